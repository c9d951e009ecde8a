//! A fake of Google Cloud: Compute Engine, IAM, Cloud Resource Manager, Cloud DNS.
