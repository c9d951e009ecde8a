//! Role assignments and role definitions.

use serde_json::{Value, json};

use super::Azure;
use super::path::Path;
use crate::Answer;

impl Azure {
    pub(super) fn assign(&mut self, path: &Path, body: &Value) -> Answer {
        if let Some(group) = &path.group
            && !self.resources.contains_key(group)
        {
            return self.absent(path);
        }
        let mut properties = body["properties"].clone();
        let object = properties["principalId"].as_str().unwrap_or_default();
        if !self.principals.values().any(|it| it.object == object) {
            let message = "the principal does not exist in the directory";
            return Answer::refused(400, "PrincipalNotFound", message);
        }
        let scope = path.key.split("/providers/microsoft.authorization/").next();
        properties["scope"] = json!(scope);
        let is_same = |other: &&Value| {
            let same = |field: &str| other["properties"][field] == properties[field];
            ["scope", "principalId", "roleDefinitionId"]
                .into_iter()
                .all(same)
        };
        let there = self.resources.get(&path.key);
        if there.is_some() || self.resources.values().any(|it| is_same(&it)) {
            let message = "the role assignment already exists";
            return Answer::refused(409, "RoleAssignmentExists", message);
        }
        let mut document = path.document(json!({}), "Succeeded");
        document["properties"] = properties;
        self.resources.insert(path.key.clone(), document.clone());
        Answer::new(201, document)
    }

    /// Those of a principal, at, above and below the scope.
    pub(super) fn assignments(&self, filter: &str) -> Vec<Value> {
        let principal = filter.split('\'').nth(1).unwrap_or_default();
        let all = self.resources.iter();
        let assignments = all.filter(|(key, _)| Path::new(key).is_assignment());
        let found = assignments.filter(|(_, body)| body["properties"]["principalId"] == principal);
        found.map(|(_, body)| body.clone()).collect()
    }

    pub(super) fn definitions(&self, filter: &str) -> Vec<Value> {
        let name = filter.split('\'').nth(1).unwrap_or_default();
        let found = self.roles.get(name);
        let found = found.map(|id| json!({ "id": id, "properties": { "roleName": name } }));
        found.into_iter().collect()
    }
}
