//! OS processes as children.
