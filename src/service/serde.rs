//! The serialised form of the list of services.

use super::ServiceInfo;
use crate::serde::serialize;

serialize!(ServiceInfo { scope, service, name, provider, incarnation });
