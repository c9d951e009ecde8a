//! Internet Services: zones and records of DNS.

use serde_json::json;
use support::rest::Request;

use super::{IbmCloud, Kind, absent, is_asked_for, unknown};
use crate::Answer;

impl IbmCloud {
    pub(super) fn internet(&mut self, request: &Request, parts: &[&str]) -> Answer {
        match (request.method.as_str(), parts) {
            ("GET", ["v1", crn, "zones"]) => {
                let found: Vec<_> = self
                    .all(Kind::Zone)
                    .filter(|it| it["instance"] == *crn)
                    .collect();
                let count = found.len();
                let info = json!({ "page": 1, "per_page": 50, "total_count": count });
                Answer::ok(json!({ "success": true, "result": found, "result_info": info }))
            }
            ("GET", ["v1", crn, "zones", zone, "dns_records"]) if self.has_zone(crn, zone) => self
                .list(Kind::Record, "result", |it| {
                    it["zone"] == *zone && is_asked_for(request, it, "name", "name")
                }),
            ("DELETE", ["v1", crn, "zones", zone, "dns_records", id])
                if self.has_zone(crn, zone) =>
            {
                self.delete(Kind::Record, id)
            }
            (_, ["v1", _, "zones", ..]) => absent(),
            _ => unknown(),
        }
    }

    /// Adds a record to the first zone, and returns its identifier.
    pub fn add_record(&mut self, name: &str, content: &str) -> String {
        let zone = self.all(Kind::Zone).next().map(|it| it["id"].clone());
        self.add(
            Kind::Record,
            json!({ "name": name, "type": "CNAME", "content": content, "zone": zone }),
        )
    }

    fn has_zone(&self, crn: &str, zone: &str) -> bool {
        let zone = self.get(Kind::Zone, zone);
        zone.is_some_and(|zone| zone["instance"] == crn)
    }
}
