//! Instances and their console logs, as EC2 describes them: pure.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::aws::Element;
use support::ec2::tags;

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) id: String,
    /// Its tag `Name`; empty if it has none.
    name: String,
}

/// A page of instances.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) instances: Vec<Instance>,
    /// The token of the next page.
    pub(super) next: Option<String>,
}

/// Reads the response of `DescribeInstances`.
pub(super) fn read(response: &Element) -> Page {
    let reservations = response.items("reservationSet").iter();
    let instances = reservations.flat_map(|reservation| reservation.items("instancesSet"));
    let instances = instances.map(|instance| Instance {
        id: instance.text_at("instanceId").to_owned(),
        name: tags(instance).remove("Name").unwrap_or_default(),
    });
    let next = response.text_at("nextToken");
    Page {
        instances: instances.collect(),
        next: (!next.is_empty()).then(|| next.to_owned()),
    }
}

/// The console log in the response of `GetConsoleOutput`; `None` if it is not base64. It is empty while there is none.
pub(super) fn console(response: &Element) -> Option<Vec<u8>> {
    let mut output = response.text_at("output").to_owned();
    output.retain(|c| !c.is_ascii_whitespace());
    STANDARD.decode(output).ok()
}

/// A file name for each instance. Tags are what users write, so they are no paths, and may be the same.
pub(super) fn file_names(instances: &[Instance]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let names = instances.iter().map(|instance| {
        let name = safe(&instance.name);
        let name = if name.is_empty() || !taken.insert(name.clone()) {
            safe(&format!(
                "{name}{}{}",
                if name.is_empty() { "" } else { "-" },
                instance.id
            ))
        } else {
            name
        };
        format!("{name}.log")
    });
    names.collect()
}

fn safe(name: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = name
        .chars()
        .map(|c| if is_safe(c) { c } else { '_' })
        .collect();
    name.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(id: &str, name: &str) -> Instance {
        Instance {
            id: id.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn instances_are_read_with_their_names() {
        let document = "<DescribeInstancesResponse><reservationSet>\
            <item><instancesSet><item><instanceId>i-1</instanceId><tagSet>\
            <item><key>a</key><value>b</value></item><item><key>Name</key><value>a-worker</value></item>\
            </tagSet></item></instancesSet></item>\
            <item><instancesSet><item><instanceId>i-2</instanceId></item></instancesSet></item>\
            </reservationSet><nextToken>t</nextToken></DescribeInstancesResponse>";
        let page = read(&Element::parse(document).unwrap());
        let expected = [instance("i-1", "a-worker"), instance("i-2", "")];
        assert_eq!(page.instances, expected);
        assert_eq!(page.next.as_deref(), Some("t"));
        let last = Element::parse("<DescribeInstancesResponse></DescribeInstancesResponse>");
        assert_eq!(read(&last.unwrap()).next, None);
    }

    #[test]
    fn console_logs_are_decoded() {
        for (output, expected) in [("aGVs\nbG8=", Some("hello")), ("", Some("")), ("!", None)] {
            let document = format!("<R><output>{output}</output></R>");
            let text = console(&Element::parse(&document).unwrap());
            assert_eq!(text.as_deref(), expected.map(str::as_bytes), "{output}");
        }
    }

    #[test]
    fn files_stay_in_the_directory_and_are_not_written_twice() {
        let instances = [
            instance("i-1", "a"),
            instance("i-2", "a"),
            instance("i-3", ""),
            instance("i-4", "../../x"),
        ];
        let expected = ["a.log", "a-i-2.log", "i-3.log", "_.._x.log"];
        assert_eq!(file_names(&instances), expected);
    }
}
