//! The jobs that the bench gives to the load client, and their outcomes: one JSON document per line.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which names a peer's clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spelling {
    /// The private groups, as they are stored.
    Private,
    /// The standard groups: what a rewriting proxy shows.
    Standard,
}

/// Where to send requests, and with which names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Target {
    /// The listener.
    pub address: SocketAddr,
    /// The names to use, and to expect.
    pub spelling: Spelling,
    /// The authority and the token file to reach the API server with. Without: plain HTTP, no credentials.
    pub credentials: Option<Credentials>,
}

/// What a client of the API server itself needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Credentials {
    /// The authority that signed the server's certificate, PEM.
    pub authority: PathBuf,
    /// A file with a bearer token.
    pub token: PathBuf,
}

/// One kind of request with its one right response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// GET of one Machine.
    Get,
    /// Merge patch of one Machine; the response is the Machine.
    Patch,
    /// LIST of so many bytes of Machines (to the next whole Machine).
    List {
        /// Size of the response as it is stored.
        bytes: u64,
    },
}

/// What the load client has to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Job {
    /// Calls one after the other on one connection. Its outcome is [`Outcome::Samples`], a call each.
    Latency {
        /// Whom to call.
        target: Target,
        /// What to send.
        call: Call,
        /// How many calls are timed.
        count: usize,
    },
    /// One watch. Its outcome is [`Outcome::Samples`]: the time from the server's stamp to the whole event's arrival.
    Watch {
        /// Whom to watch.
        target: Target,
        /// How many events.
        events: usize,
        /// Time between two of them.
        interval_micros: u64,
    },
    /// Clients that send small GETs as fast as they get responses. Its outcome is [`Outcome::Rate`].
    Throughput {
        /// Whom to call.
        target: Target,
        /// How many clients, a connection each.
        clients: usize,
        /// For how long.
        millis: u64,
    },
    /// A steady load: small reads and patches at a rate, while watches receive events. Its outcome is [`Outcome::Rate`].
    Steady {
        /// Whom to call.
        target: Target,
        /// How many watches, five events a second each.
        watches: usize,
        /// Requests a second.
        rate: u32,
        /// For how long.
        millis: u64,
    },
    /// Lists at the same time. Its outcome is [`Outcome::Rate`].
    Lists {
        /// Whom to call.
        target: Target,
        /// How many clients, one list each.
        clients: usize,
        /// Size of one response as it is stored.
        bytes: u64,
    },
    /// Opens watches without events and holds them until [`Job::Release`]. Its outcome is [`Outcome::Done`].
    Hold {
        /// Whom to watch.
        target: Target,
        /// How many.
        watches: usize,
    },
    /// Closes what [`Job::Hold`] opened. Its outcome is [`Outcome::Done`].
    Release,
    /// Sends requests until the first correct response. Its outcome is [`Outcome::At`].
    FirstResponse {
        /// The server.
        target: Target,
        /// A path that must return 200; without one, a small GET.
        path: Option<String>,
        /// When to give up.
        within_millis: u64,
    },
    /// Runs the translator and what it is compared with on lists in memory. Its outcome is [`Outcome::Translation`].
    Translate {
        /// Size of the lists.
        bytes: u64,
        /// How long each way is run with each list.
        millis: u64,
    },
}

/// The outcome of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is done.
    Done,
    /// Durations in nanoseconds, in the order in which they were taken.
    Samples(Vec<u64>),
    /// So many right responses in so many seconds.
    Rate {
        /// Responses.
        requests: u64,
        /// From the first request to the last response.
        seconds: f64,
    },
    /// A point in time, see [`crate::clock::now`].
    At(u64),
    /// Speeds of translating.
    Translation(Translation),
    /// A response or the connection was wrong. The run is invalid.
    Failed(String),
}

/// Ways to handle a list, on one core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Translation {
    /// A list of Machines under private names: seven names in each must change.
    pub list: Speeds,
    /// A list of the same size in which no name is in the table.
    pub unchanged: Speeds,
}

/// Speeds with one body, in gigabytes of input a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Speeds {
    /// Our translator, fed with pieces as they come from a TLS connection.
    pub stream: f64,
    /// Our translator, given the whole body.
    pub whole: f64,
    /// `serde_json`: parse to a tree, print it again, change nothing.
    pub serde_json: f64,
    /// A search for all places of the private names' common part, which changes nothing.
    pub search: f64,
}
