//! A fake of IBM Cloud: the services that create and destroy infrastructure of Power VS.
