//! Tests of the service as a process: flags, database, sockets and exit code.

mod chaos;
mod config;
mod defence;
mod feed;
mod files;
mod kills;
mod resume;
mod stop;
mod usage;
mod wire;
