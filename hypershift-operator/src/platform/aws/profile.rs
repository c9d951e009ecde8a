//! A profile of the AWS SDK, from values that users write: nothing but a role and a region gets into it.
//!
//! The format has no escapes. A value with a line break would add settings of its own, and `credential_process` is one
//! that runs a program in whatever reads the file.

use std::fmt;

/// Where the token is that a role is assumed with.
const TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";
/// The digits of an account.
const ACCOUNT: usize = 12;

/// The ARN of a role: `arn:<partition>:iam::<account>:role/<name>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoleArn<'a>(&'a str);

/// The name of a region, such as `us-east-1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region<'a>(&'a str);

// === impl RoleArn ===

impl<'a> RoleArn<'a> {
    /// The ARN, if it is one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(6, ':');
        let mut next = || parts.next().unwrap_or_default();
        let (arn, partition, service, region, account, resource) =
            (next(), next(), next(), next(), next(), next());
        let name = resource.strip_prefix("role/").unwrap_or_default();
        let is_arn = (arn, service, region) == ("arn", "iam", "")
            && partition.starts_with("aws")
            && is_made_of(partition, b"-")
            && account.len() == ACCOUNT
            && account.bytes().all(|it| it.is_ascii_digit())
            && is_made_of(name, b"+=,.@_/-");
        is_arn.then_some(Self(text))
    }
}

impl fmt::Display for RoleArn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

// === impl Region ===

impl<'a> Region<'a> {
    /// The region, if it is one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        is_made_of(text, b"-").then_some(Self(text))
    }
}

impl fmt::Display for Region<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

fn is_made_of(text: &str, signs: &[u8]) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
    !text.is_empty() && text.bytes().all(is_known)
}

/// The profile: the role, and the token that it is assumed with.
pub(crate) fn profile(arn: RoleArn<'_>, region: Region<'_>) -> String {
    format!(
        "[default]\nrole_arn = {arn}\nweb_identity_token_file = {TOKEN}\nsts_regional_endpoints = regional\nregion = \
         {region}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_regions_are_validated() {
        for (text, expected) in [
            ("arn:aws:iam::123456789012:role/a", true),
            (
                "arn:aws-us-gov:iam::123456789012:role/path/to/a_B+=,.@-9",
                true,
            ),
            ("arn:aws-cn:iam::123456789012:role/a", true),
            (
                "arn:aws:iam::123456789012:role/a\ncredential_process = sh",
                false,
            ),
            ("arn:aws:iam::123456789012:role/a b", false),
            ("arn:aws:iam::123456789012:role/", false),
            ("arn:aws:iam::123456789012:user/a", false),
            ("arn:aws:iam::12345678901:role/a", false),
            ("arn:aws:iam:us-east-1:123456789012:role/a", false),
            ("arn:aws:sts::123456789012:role/a", false),
            ("arn:a\nws:iam::123456789012:role/a", false),
            ("arn:", false),
            ("a", false),
            ("", false),
        ] {
            assert_eq!(RoleArn::parse(text).is_some(), expected, "{text:?}");
        }
        for (text, expected) in [
            ("us-east-1", true),
            ("us-east-1\ncredential_process = sh", false),
            ("us east", false),
            ("", false),
        ] {
            assert_eq!(Region::parse(text).is_some(), expected, "{text:?}");
        }
    }
}
