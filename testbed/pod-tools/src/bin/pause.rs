//! Does nothing, for as long as its pod lives: the process that a pod's network belongs to.
//!
//! The container runtime ends it by SIGKILL, so it listens to no signal.

fn main() {
    loop {
        std::thread::park();
    }
}
