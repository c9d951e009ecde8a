//! Cloud Object Storage: buckets of an instance, and objects in them. Documents are XML.

use std::fmt::Write as _;

use serde_json::{Value, json};
use support::rest::Request;

use super::{IbmCloud, Kind, absent, conflict, unknown};
use crate::Answer;

impl IbmCloud {
    pub(super) fn storage(&mut self, request: &Request, parts: &[&str], region: &str) -> Answer {
        match (request.method.as_str(), parts) {
            ("GET", [] | [""]) => {
                let instance = request.headers.get("ibm-service-instance-id");
                self.buckets(instance.map_or("", String::as_str))
            }
            ("GET", [bucket]) if self.has_bucket(bucket, region) => self.contents(bucket),
            ("DELETE", [bucket]) if self.has_bucket(bucket, region) => {
                if self.all(Kind::Object).any(|it| it["bucket"] == *bucket) {
                    return conflict();
                }
                for id in self.ids(Kind::Bucket, |it| it["name"] == *bucket) {
                    self.remove(Kind::Bucket, &id);
                }
                Answer::empty(204)
            }
            ("DELETE", [bucket, key @ ..]) if self.has_bucket(bucket, region) => {
                let key = key.join("/");
                let is = |it: &Value| it["bucket"] == *bucket && it["name"] == key;
                for id in self.ids(Kind::Object, is) {
                    self.remove(Kind::Object, &id);
                }
                Answer::empty(204)
            }
            ("GET" | "DELETE", [_, ..]) => absent(),
            _ => unknown(),
        }
    }

    /// Adds a bucket of an instance with objects of these keys.
    pub fn add_bucket(&mut self, instance: &str, name: &str, region: &str, keys: &[&str]) {
        let bucket = json!({ "name": name, "instance": instance, "region": region });
        self.add(Kind::Bucket, bucket);
        for key in keys {
            self.add(Kind::Object, json!({ "name": key, "bucket": name }));
        }
    }

    fn has_bucket(&self, name: &str, region: &str) -> bool {
        let bucket = self.named(Kind::Bucket, name);
        bucket.is_some_and(|bucket| bucket["region"] == region)
    }

    fn buckets(&self, crn: &str) -> Answer {
        let mut text = String::new();
        for bucket in self.all(Kind::Bucket) {
            let instance = bucket["instance"].as_str().unwrap_or_default();
            if crn.contains(instance) {
                let name = bucket["name"].as_str().unwrap_or_default();
                // Writing to a String never fails.
                let _ = write!(text, "<Bucket><Name>{name}</Name></Bucket>");
            }
        }
        xml(&format!(
            "<ListAllMyBucketsResult><Buckets>{text}</Buckets></ListAllMyBucketsResult>"
        ))
    }

    /// One object, so that a client that does not ask again leaves others.
    fn contents(&self, bucket: &str) -> Answer {
        let object = self.all(Kind::Object).find(|it| it["bucket"] == bucket);
        let key = object.and_then(|it| it["name"].as_str());
        let contents = key.map(|key| format!("<Contents><Key>{key}</Key></Contents>"));
        let contents = contents.unwrap_or_default();
        xml(&format!("<ListBucketResult>{contents}</ListBucketResult>"))
    }
}

fn xml(text: &str) -> Answer {
    Answer::ok(json!(text))
}
