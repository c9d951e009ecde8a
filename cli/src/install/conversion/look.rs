//! Asks the cluster what the webhook can stand on.

use anyhow::{Context, bail};
use rustls::pki_types::UnixTime;

use super::args::Certificates;
use super::{NAME, Setup, Trust};
use crate::install::cluster::Cluster;
use crate::install::object::is_ours;
use crate::install::options::{Options, Types};
use conversion_certificates::Serving;

/// Where OpenShift serves the configuration of its service CA.
const SERVICE_CA: &str = "/apis/operator.openshift.io/v1/servicecas/cluster";

/// The same options, with the certificate that the webhook has or gets. Without a cluster, OpenShift's service CA is
/// taken to be there: a certificate of our own would be another one each time.
pub(crate) async fn complete(
    options: &Options,
    cluster: Option<&Cluster>,
) -> anyhow::Result<Options> {
    let mut options = options.clone();
    if let Types::Private(private) = &mut options.types
        && let Some(setup) = &mut private.conversion
    {
        setup.trust = trust(setup, cluster).await?;
    }
    Ok(options)
}

async fn trust(setup: &Setup, cluster: Option<&Cluster>) -> anyhow::Result<Trust> {
    let Trust::Undecided(wanted) = setup.trust else {
        return Ok(setup.trust.clone());
    };
    let Some(cluster) = cluster else {
        return match wanted {
            Certificates::Auto | Certificates::ServiceCa => Ok(Trust::ServiceCa),
            Certificates::SelfManaged => bail!(
                "a certificate that hypershift install issues cannot be rendered: install, or give \
                 --conversion-certificates=service-ca"
            ),
        };
    };
    let service_ca = match wanted {
        Certificates::SelfManaged => false,
        Certificates::ServiceCa => true,
        Certificates::Auto => cluster
            .find(SERVICE_CA)
            .await
            .context("cannot ask for OpenShift's service CA")?
            .is_some(),
    };
    if service_ca {
        return Ok(Trust::ServiceCa);
    }
    let current = current(setup, cluster).await?;
    let serving = Serving::renewed(current, &setup.server_name(), UnixTime::now())?;
    Ok(Trust::Own(serving))
}

/// The certificate that exists. One with another manager is rejected with its Secret, like any foreign object.
async fn current(setup: &Setup, cluster: &Cluster) -> anyhow::Result<Option<Serving>> {
    let path = setup.secret_path();
    let secret = cluster
        .find(&path)
        .await
        .with_context(|| format!("cannot read the Secret of {NAME}"))?;
    Ok(secret.filter(is_ours).as_ref().and_then(Serving::of))
}
