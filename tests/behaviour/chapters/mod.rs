//! Figures and tables of the book that its own listings don't show.

mod before_you_go_live;
mod counting;
mod deliveries;
mod giving_up;
mod limits;
mod mailboxes;
mod policy_files;
mod triggers;
mod waits;
