//! Tokens of Google Cloud, and the endpoints of its APIs.
