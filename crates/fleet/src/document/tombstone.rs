//! What remains of a decommissioned cluster: the reason to answer its polls with an empty list.

use serde_json::{Map, Value, json};

use super::require_text;
use crate::canonical::Canonical;
use crate::finding::Finding;
use crate::ids::{Dns, Id, Uid};
use crate::pointer::Pointer;

/// A decommission record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tombstone {
    /// The DNS name whose polls are answered with an empty list.
    pub dns: Dns,
    /// The id that the cluster had.
    pub id: Id,
    /// The uid that the cluster had: its own credential still reads the empty list.
    pub uid: Uid,
}

impl Tombstone {
    pub(crate) fn decode(mut map: Map<String, Value>) -> Result<Self, Finding> {
        let dns = Dns::from(&*require_text(&mut map, "dns")?);
        let id = Id::from(&*require_text(&mut map, "id")?);
        let uid = Uid::parse(&require_text(&mut map, "uid")?);
        let uid = uid.ok_or_else(|| Finding::new(Pointer::to("uid"), "must be 32 hexadecimal digits"))?;
        Ok(Self { dns, id, uid })
    }

    pub(crate) fn canonical(&self) -> Canonical {
        let value = json!({"dns": self.dns.as_str(), "id": self.id.as_str(), "uid": self.uid.to_string()});
        Canonical::of(value.as_object().expect("it is one"))
    }
}
