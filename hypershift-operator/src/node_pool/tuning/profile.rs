//! The values of a `PerformanceProfile`: what the tuning operator would refuse, and only later.

use std::collections::BTreeSet;

use serde_json::Value;

/// Sets of processors. No processor is in two of them.
const SETS: [&str; 4] = ["reserved", "isolated", "offlined", "shared"];
/// Sizes of huge pages on any architecture.
const SIZES: [&str; 6] = ["64k", "2M", "32M", "512M", "1G", "16G"];
/// Policies of kubelet's topology manager.
const POLICIES: [&str; 4] = ["none", "best-effort", "restricted", "single-numa-node"];

/// First and last processor.
type Range = (u32, u32);

/// Adds what is wrong with the spec of a performance profile, which has the form of one.
pub(super) fn check(spec: &Value, wrong: &mut Vec<String>) {
    processors(&spec["cpu"], wrong);
    huge_pages(&spec["hugepages"], wrong);
    let policy = spec["numa"]["topologyPolicy"].as_str();
    if policy.is_some_and(|it| !POLICIES.contains(&it)) {
        let policies = POLICIES.join(", ");
        wrong.push(format!(
            "spec.numa.topologyPolicy is not known: use one of {policies}"
        ));
    }
    devices(&spec["net"]["devices"], wrong);
    hints(spec, wrong);
}

fn processors(cpu: &Value, wrong: &mut Vec<String>) {
    let mut known: Vec<(&str, Vec<Range>)> = Vec::new();
    for name in SETS {
        let text = cpu[name].as_str().unwrap_or_default();
        let is_needed = ["reserved", "isolated"].contains(&name);
        if text.is_empty() && !is_needed {
            continue;
        }
        let Some(ranges) = ranges(text) else {
            wrong.push(format!(
                "spec.cpu.{name} has to be a list of processors, such as 0-3,8"
            ));
            continue;
        };
        let shared = known.iter().filter(|(_, other)| {
            other
                .iter()
                .any(|it| ranges.iter().any(|own| meet(*it, *own)))
        });
        wrong.extend(shared.map(|(other, _)| {
            format!(
                "spec.cpu.{other} and spec.cpu.{name} have processors in common: remove each from one of them"
            )
        }));
        known.push((name, ranges));
    }
}

/// The ranges of a list such as `0-3,8`. There is at least one.
fn ranges(text: &str) -> Option<Vec<Range>> {
    let range = |part: &str| -> Option<Range> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): Range = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some((first, last))
    };
    text.split(',').map(range).collect()
}

fn meet((first, last): Range, (start, end): Range) -> bool {
    first <= end && start <= last
}

fn huge_pages(pages: &Value, wrong: &mut Vec<String>) {
    let is_size = |it: &Value| it.as_str().is_none_or(|it| SIZES.contains(&it));
    let mut size = |path: &str, value: &Value| {
        if !is_size(value) {
            let sizes = SIZES.join(", ");
            wrong.push(format!(
                "{path} is no size of huge pages: use one of {sizes}"
            ));
        }
    };
    size(
        "spec.hugepages.defaultHugepagesSize",
        &pages["defaultHugepagesSize"],
    );
    let pages = items(&pages["pages"]);
    for (index, page) in pages.iter().enumerate() {
        size(
            &format!("spec.hugepages.pages[{index}].size"),
            &page["size"],
        );
    }
    let mut seen = BTreeSet::new();
    for (index, page) in pages.iter().enumerate() {
        if !seen.insert((page["size"].as_str(), page["node"].as_u64())) {
            wrong.push(format!(
                "spec.hugepages.pages[{index}] has the size and the node of another one: use one of them with the sum"
            ));
        }
    }
}

fn devices(devices: &Value, wrong: &mut Vec<String>) {
    for (index, device) in items(devices).iter().enumerate() {
        let path = format!("spec.net.devices[{index}]");
        if device["interfaceName"] == "" {
            wrong.push(format!(
                "{path}.interfaceName is empty: add a name, or remove the field"
            ));
        }
        for name in ["vendorID", "deviceID"] {
            if device[name].as_str().is_some_and(|it| !is_id(it)) {
                wrong.push(format!(
                    "{path}.{name} has to be four hexadecimal digits, such as 0x8086"
                ));
            }
        }
        if !device["deviceID"].is_null() && device["vendorID"].is_null() {
            wrong.push(format!(
                "{path} has a deviceID without a vendorID: add the vendorID"
            ));
        }
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Hints that contradict each other, or another setting.
fn hints(spec: &Value, wrong: &mut Vec<String>) {
    let hints = &spec["workloadHints"];
    if hints["realTime"] == false && spec["realTimeKernel"]["enabled"] == true {
        wrong.push(
            "spec.workloadHints.realTime is false, and spec.realTimeKernel.enabled is true: change one of them"
                .to_owned(),
        );
    }
    if hints["highPowerConsumption"] == true && hints["perPodPowerManagement"] == true {
        wrong.push(
            "spec.workloadHints has highPowerConsumption and perPodPowerManagement: disable one of them"
                .to_owned(),
        );
    }
    let shared = spec["cpu"]["shared"].as_str().unwrap_or_default();
    if hints["mixedCpus"] == true && shared.is_empty() {
        wrong.push(
            "spec.workloadHints.mixedCpus needs processors in spec.cpu.shared: add some, or disable it"
                .to_owned(),
        );
    }
}
