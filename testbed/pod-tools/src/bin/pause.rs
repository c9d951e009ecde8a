//! Does nothing until its pod is deleted: the process that owns a pod's network namespace.
//!
//! The container runtime ends it by SIGKILL, so it listens to no signal.

fn main() {
    loop {
        std::thread::park();
    }
}
