//! Tokens of Microsoft Entra ID, and the endpoints of Azure.
