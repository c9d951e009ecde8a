//! The way to the API server: a kubeconfig, or the service account of the pod.

use std::time::Duration;

use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::args::ApiServerArgs;

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {path}: give --kubeconfig a file with a server and a user")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// No kubeconfig was named, and there is none to be found.
    #[error("there is neither a kubeconfig nor a service account: give --kubeconfig")]
    Nowhere(#[source] InferConfigError),
}

/// How the API server is reached.
pub async fn config(args: &ApiServerArgs) -> Result<kube::Config, Error> {
    let options = KubeConfigOptions {
        context: args.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config =
        match &args.kubeconfig {
            Some(path) => {
                let failed = |source| Error::Kubeconfig {
                    path: path.display().to_string(),
                    source,
                };
                let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
                kube::Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .map_err(failed)?
            }
            None if args.context.is_some() => kube::Config::from_kubeconfig(&options)
                .await
                .map_err(|source| Error::Kubeconfig {
                    path: "of $KUBECONFIG".to_owned(),
                    source,
                })?,
            None => kube::Config::infer().await.map_err(Error::Nowhere)?,
        };
    config.connect_timeout = Some(CONNECT_TIME);
    // Callers try again themselves: they have deadlines, and say what is wrong meanwhile.
    config.default_retry = false;
    Ok(config)
}
