//! `resolve NAME`: prints the addresses of a name, one a line, as programs in its pod see them.

use std::collections::BTreeSet;
use std::net::ToSocketAddrs;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("usage: resolve NAME");
        return ExitCode::from(64);
    };
    match (name.as_str(), 0).to_socket_addrs() {
        Ok(addresses) => {
            let each: BTreeSet<_> = addresses.map(|address| address.ip()).collect();
            for address in each {
                println!("{address}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: cannot resolve {name}: {error}");
            ExitCode::FAILURE
        }
    }
}
