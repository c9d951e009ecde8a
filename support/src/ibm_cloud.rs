//! Tokens of IBM Cloud, and the endpoints of its services.
