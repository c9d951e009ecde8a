//! How many machines each group is to have: pure.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::flags::Flags;
use crate::model::{Group, Node, Pod, Shape};

/// What is seen in one scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) groups: Vec<Group>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pods: Vec<Pod>,
}

/// What is remembered from one scan to the next.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Since when nodes are unneeded.
    unneeded: HashMap<String, Instant>,
    /// When a machine was added.
    added: Option<Instant>,
}

/// A group that gets more machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Growth<'a> {
    pub(crate) group: &'a Group,
    pub(crate) replicas: i64,
}

/// A machine that no pod needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removal<'a> {
    pub(crate) group: &'a Group,
    pub(crate) machine: &'a str,
    pub(crate) is_marked: bool,
}

// === impl Seen ===

impl Seen {
    /// The groups that need more machines for pods that wait. A pod that fits on a machine that is on its way waits for it.
    pub(crate) fn growth(&self, flags: &Flags) -> Vec<Growth<'_>> {
        let mut room: Vec<Shape> = Vec::new();
        for group in &self.groups {
            let ready = i64::try_from(group.ready(&self.nodes).len()).unwrap_or(i64::MAX);
            let shape = group.shape(&self.nodes);
            room.extend((ready..group.replicas).filter_map(|_| shape.clone()));
        }
        let mut added = vec![0_i64; self.groups.len()];
        for pod in self.waiting(flags) {
            if let Some(shape) = room.iter_mut().find(|shape| pod.fits(shape)) {
                take(shape, pod);
                continue;
            }
            let Some((at, mut shape)) = self.choose(pod, &added, flags) else {
                continue;
            };
            added[at] += 1;
            take(&mut shape, pod);
            room.push(shape);
        }
        let growing = self.groups.iter().zip(added).filter(|(_, more)| *more > 0);
        growing
            .map(|(group, more)| Growth {
                group,
                replicas: group.replicas + more,
            })
            .collect()
    }

    /// A line for the log: why nothing is scaled.
    pub(crate) fn summary(&self, flags: &Flags) -> String {
        let groups = self.groups.iter().map(|group| {
            let Group {
                name,
                min,
                max,
                replicas,
                machines,
                ..
            } = group;
            let (machines, ready) = (machines.len(), group.ready(&self.nodes).len());
            format!("{name} has {replicas} of {min} to {max}, {machines} machines, {ready} ready")
        });
        let groups: Vec<_> = groups.collect();
        let waiting: Vec<_> = self.waiting(flags).map(|pod| pod.name.as_str()).collect();
        let needed = self.nodes.iter().map(|node| {
            let mut pods = self.pods.iter();
            let pod = pods.find(|pod| pod.is_on(&node.name));
            let pod = pod.map_or("no pod", |pod| pod.name.as_str());
            format!("{} by {pod}", node.name)
        });
        let needed: Vec<_> = needed.collect();
        format!(
            "groups: {}; waiting pods: {}; nodes are needed: {}",
            groups.join(", "),
            waiting.join(", "),
            needed.join(", ")
        )
    }

    fn waiting(&self, flags: &Flags) -> impl Iterator<Item = &Pod> {
        let cutoff = flags.cutoff;
        let pods = self.pods.iter();
        pods.filter(move |pod| pod.is_unschedulable && !pod.is_of_node && pod.priority >= cutoff)
    }

    /// The group with the smallest machine for a pod, and of equal ones the group with the fewest machines.
    fn choose(&self, pod: &Pod, added: &[i64], flags: &Flags) -> Option<(usize, Shape)> {
        let total: i64 = self.groups.iter().map(|group| group.replicas).sum();
        let total = total + added.iter().sum::<i64>();
        if flags.most_nodes.is_some_and(|most| total >= most) {
            return None;
        }
        let candidates = self.groups.iter().enumerate().filter_map(|(at, group)| {
            let shape = group.shape(&self.nodes)?;
            let size = group.replicas + added[at];
            (size < group.max && pod.fits(&shape)).then_some((at, size, shape))
        });
        let best =
            candidates.min_by_key(|(at, size, shape)| (shape.processors, shape.memory, *size, *at));
        best.map(|(at, _, shape)| (at, shape))
    }

    /// A machine that is removed now: its node has been without pods of users for long enough.
    pub(crate) fn removal(
        &self,
        flags: &Flags,
        memory: &mut Memory,
        now: Instant,
    ) -> Option<Removal<'_>> {
        let is_needed = |node: &str| {
            let mut pods = self.pods.iter();
            pods.any(|pod| pod.is_on(node))
        };
        let names = self.nodes.iter().map(|node| &node.name);
        let unneeded: Vec<_> = names.filter(|name| !is_needed(name)).collect();
        memory.unneeded.retain(|name, _| unneeded.contains(&name));
        for name in unneeded {
            memory.unneeded.entry(name.clone()).or_insert(now);
        }
        let has_passed = |since: Instant, time: Duration| now.duration_since(since) >= time;
        let is_too_soon = memory
            .added
            .is_some_and(|at| !has_passed(at, flags.after_add));
        if !flags.scales_down || is_too_soon {
            return None;
        }
        self.groups
            .iter()
            .filter(|group| group.replicas > group.min)
            // Not while machines come or go.
            .filter(|group| {
                i64::try_from(group.ready(&self.nodes).len()) == Ok(group.replicas)
                    && i64::try_from(group.machines.len()) == Ok(group.replicas)
            })
            .find_map(|group| {
                let machine = group.machines.iter().find(|machine| {
                    let since = machine.node.as_ref().and_then(|it| memory.unneeded.get(it));
                    since.is_some_and(|since| has_passed(*since, flags.unneeded))
                })?;
                Some(Removal {
                    group,
                    machine: &machine.name,
                    is_marked: machine.is_marked,
                })
            })
    }
}

// === impl Memory ===

impl Memory {
    /// A machine was added.
    pub(crate) fn grew(&mut self, now: Instant) {
        self.added = Some(now);
    }
}

fn take(shape: &mut Shape, pod: &Pod) {
    shape.processors -= pod.processors;
    shape.memory -= pod.memory;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Machine;

    fn flags(more: &[&str]) -> Flags {
        let args = [
            "--node-group-auto-discovery=clusterapi:namespace=a",
            "--kubeconfig=/k",
            "--scale-down-unneeded-time=60s",
            "--scale-down-delay-after-add=30s",
        ];
        let args: Vec<_> = args.iter().chain(more).map(|&arg| arg.to_owned()).collect();
        Flags::parse(&args).unwrap()
    }

    /// A group of machines with two processors.
    fn group(name: &str, replicas: i64, max: i64) -> Group {
        Group {
            plural: "machinedeployments",
            name: name.to_owned(),
            min: 0,
            max,
            replicas,
            machines: (0..replicas)
                .map(|at| Machine {
                    name: format!("{name}-{at}"),
                    node: Some(format!("node-{name}-{at}")),
                    is_marked: false,
                })
                .collect(),
            first: Some(shape()),
        }
    }

    fn shape() -> Shape {
        Shape {
            processors: 2000,
            memory: 1 << 30,
            ..Shape::default()
        }
    }

    fn nodes(of: &Group, ready: usize) -> Vec<Node> {
        let machines = of.machines.iter().take(ready);
        machines
            .map(|machine| Node {
                name: machine.node.clone().unwrap(),
                is_ready: true,
                shape: shape(),
            })
            .collect()
    }

    fn pending(processors: i64) -> Pod {
        Pod {
            is_unschedulable: true,
            processors,
            ..Pod::default()
        }
    }

    #[test]
    fn pods_that_wait_add_machines() {
        for (name, replicas, ready, pods, most, expected) in [
            ("nothing waits", 1, 1, vec![], None, vec![]),
            (
                "the smaller group grows",
                1,
                1,
                vec![1500],
                None,
                vec![("b", 1)],
            ),
            (
                "two on one machine",
                0,
                0,
                vec![900, 900],
                None,
                vec![("a", 1)],
            ),
            (
                "two machines",
                0,
                0,
                vec![1500, 1500],
                None,
                vec![("a", 1), ("b", 1)],
            ),
            ("a machine is on its way", 1, 0, vec![1500], None, vec![]),
            ("no machine is large enough", 1, 1, vec![2500], None, vec![]),
            ("the total", 1, 1, vec![1500, 1500], Some(2), vec![("b", 1)]),
            (
                "the maximum of each group",
                1,
                1,
                vec![1500; 9],
                None,
                vec![("a", 2), ("b", 2)],
            ),
        ] {
            let flag = most.map(|most: i64| format!("--max-nodes-total={most}"));
            let flags = flags(&flag.iter().map(String::as_str).collect::<Vec<_>>());
            let first = group("a", replicas, 2);
            let seen = Seen {
                nodes: nodes(&first, ready),
                groups: vec![first, group("b", 0, 2)],
                pods: pods.into_iter().map(pending).collect(),
            };
            let mut found: Vec<_> = seen
                .growth(&flags)
                .iter()
                .map(|it| (it.group.name.clone(), it.replicas))
                .collect();
            found.sort();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(name, replicas)| (name.to_owned(), replicas))
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn the_log_says_why_nothing_is_scaled() {
        let one = group("a", 1, 1);
        let seen = Seen {
            nodes: nodes(&one, 1),
            groups: vec![one],
            pods: vec![
                Pod {
                    name: "stays".to_owned(),
                    node: Some("node-a-0".to_owned()),
                    ..Pod::default()
                },
                Pod {
                    name: "waits".to_owned(),
                    ..pending(1500)
                },
            ],
        };
        assert_eq!(
            seen.summary(&flags(&[])),
            "groups: a has 1 of 0 to 1, 1 machines, 1 ready; waiting pods: waits; nodes are needed: node-a-0 by stays"
        );
    }

    #[test]
    fn unneeded_nodes_are_removed_after_their_time() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let one = group("a", 2, 3);
        let mut seen = Seen {
            nodes: nodes(&one, 2),
            groups: vec![one],
            pods: vec![
                Pod {
                    node: Some("node-a-0".to_owned()),
                    ..Pod::default()
                },
                Pod {
                    node: Some("node-a-1".to_owned()),
                    is_of_node: true,
                    ..Pod::default()
                },
            ],
        };
        let mut memory = Memory::default();
        let flags = flags(&[]);
        assert_eq!(seen.removal(&flags, &mut memory, start), None);
        let early = start + 59 * second;
        assert_eq!(seen.removal(&flags, &mut memory, early), None);
        let late = start + 60 * second;
        let machine = |it: Option<Removal<'_>>| it.map(|it| it.machine.to_owned());
        let found = machine(seen.removal(&flags, &mut memory, late));
        assert_eq!(found.as_deref(), Some("a-1"));
        // Not soon after a machine was added, nor below the minimum, nor while one comes.
        memory.grew(late);
        let soon = late + 29 * second;
        assert_eq!(seen.removal(&flags, &mut memory, soon), None);
        let after = late + 30 * second;
        assert!(seen.removal(&flags, &mut memory, after).is_some());
        seen.groups[0].min = 2;
        assert_eq!(seen.removal(&flags, &mut memory, after), None);
        seen.groups[0].min = 0;
        seen.groups[0].replicas = 3;
        assert_eq!(seen.removal(&flags, &mut memory, after), None);
        seen.groups[0].replicas = 2;
        // Its time begins again when a pod has been there.
        seen.pods[1].is_of_node = false;
        assert_eq!(seen.removal(&flags, &mut memory, after), None);
        seen.pods.pop();
        assert_eq!(seen.removal(&flags, &mut memory, after), None);
        let flags = self::flags(&["--scale-down-enabled=false"]);
        let much_later = after + 3600 * second;
        assert_eq!(seen.removal(&flags, &mut memory, much_later), None);
    }
}
