//! Profiles in files of AWS's programs (INI). Pure.

use std::collections::BTreeMap;

/// The profile that is used unless `AWS_PROFILE` names another one.
pub(crate) const DEFAULT: &str = "default";

/// The settings of a profile, if the file has it.
pub(crate) fn read(file: &str, profile: &str) -> Option<BTreeMap<String, String>> {
    let mut found = None;
    let mut is_within = false;
    for line in file.lines().map(str::trim) {
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            let section = section.trim();
            let section = section.strip_prefix("profile ").unwrap_or(section).trim();
            is_within = section == profile;
            if is_within {
                found.get_or_insert_with(BTreeMap::new);
            }
            continue;
        }
        let is_comment = line.starts_with(['#', ';']);
        let Some((key, value)) = line.split_once('=').filter(|_| is_within && !is_comment) else {
            continue;
        };
        let settings = found.get_or_insert_with(BTreeMap::new);
        settings.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read() {
        let file = "# comment\n[other]\nrole_arn = no\n[default]\n; comment\n role_arn=arn:aws:iam::1:role/a=b \n\
                    WEB_IDENTITY_TOKEN_FILE = /token\n[profile third]\naws_access_key_id = a\n[empty]\n";
        let default = read(file, DEFAULT).unwrap();
        assert_eq!(default["role_arn"], "arn:aws:iam::1:role/a=b");
        assert_eq!(default["web_identity_token_file"], "/token");
        assert_eq!(default.len(), 2);
        assert_eq!(read(file, "third").unwrap()["aws_access_key_id"], "a");
        assert_eq!(read(file, "empty").unwrap().len(), 0);
        assert_eq!(read(file, "absent"), None);
        assert_eq!(read("arn:aws:iam::1:role/a", DEFAULT), None);
    }
}
