//! A fake of Azure: Resource Manager and Microsoft Graph.
