//! The service as its users see it: a process with flags, a database, two sockets and an exit code.

mod chaos;
mod feed;
mod files;
mod resume;
mod stop;
mod usage;
mod wire;
