//! What a schema would prune.
