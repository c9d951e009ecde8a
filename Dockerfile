# syntax=docker/dockerfile:1
# Images of the programs, one target each: `buildah bud --target capi-proxy .`
#
# The programs are static, so that the images hold nothing else: no shell, no library, no package to update.
# The testbed makes the same images without a builder; testbed/src/images.rs has the recipe, and a test compares.

# The compiler's image, by digest: rust@sha256:... for the version in rust-toolchain.toml. There is no default, because a
# tag can change under its name; docs/release.md has more.
ARG RUST_IMAGE

FROM ${RUST_IMAGE} AS build
ARG RUST_IMAGE
RUN case "$RUST_IMAGE" in \
        *@sha256:*) ;; \
        *) echo "RUST_IMAGE=$RUST_IMAGE has no digest: --build-arg RUST_IMAGE=rust@sha256:..." >&2; exit 1 ;; \
    esac
WORKDIR /src
COPY . .
# With --target, the flags are for the programs only and not for build scripts.
ENV RUSTFLAGS="-C target-feature=+crt-static"
# What `hypershift install` runs unless flags name other images; a release names its images here.
ARG HYPERSHIFT_RELEASE_OPERATOR_IMAGE=""
ARG HYPERSHIFT_RELEASE_PROXY_IMAGE=""
# One after the other, so that each has only the features that it asks for.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    for package in cli hypershift-operator control-plane-operator capi-proxy; do \
        cargo build --locked --release --target x86_64-unknown-linux-gnu -p "$package" || exit 1; \
    done && \
    install -D -t /out \
        target/x86_64-unknown-linux-gnu/release/hypershift \
        target/x86_64-unknown-linux-gnu/release/hypershift-operator \
        target/x86_64-unknown-linux-gnu/release/control-plane-operator \
        target/x86_64-unknown-linux-gnu/release/capi-proxy && \
    mkdir /out/links && \
    ln -s control-plane-operator /out/links/control-plane-pki-operator

FROM scratch AS hypershift
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/hypershift /hypershift
USER 65532:65532
ENTRYPOINT ["/hypershift"]

FROM scratch AS hypershift-operator
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/hypershift-operator /hypershift-operator
USER 65532:65532
ENTRYPOINT ["/hypershift-operator"]
CMD ["run"]

FROM scratch AS control-plane-operator
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/control-plane-operator /usr/bin/control-plane-operator
# The same program by another name. Of a directory, links are copied as they are.
COPY --from=build /out/links/ /usr/bin/
# By its labels hypershift-operator knows what the operator of a release can do.
LABEL io.openshift.hypershift.control-plane-operator-creates-aws-sg="true"
LABEL io.openshift.hypershift.control-plane-operator-manages.decompress-decode-config="true"
LABEL io.openshift.hypershift.control-plane-operator-private-capi-types="true"
LABEL io.openshift.hypershift.control-plane-operator-skips-haproxy="true"
LABEL io.openshift.hypershift.control-plane-pki-operator-signs-csrs="true"
LABEL io.openshift.hypershift.restricted-psa="true"
USER 65532:65532
ENTRYPOINT ["/usr/bin/control-plane-operator"]
CMD ["run"]

FROM scratch AS capi-proxy
COPY --from=build /out/capi-proxy /capi-proxy
USER 65532:65532
ENTRYPOINT ["/capi-proxy"]
CMD ["serve"]
