#!/bin/sh
# Makes the certificates of this folder: for tests alone, of names that are nobody's. The
# authority's key is thrown away, so that nothing can be signed with it any more. They count
# from long ago, on machines with a wrong clock too.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: > "$work/index"
cat > "$work/ca.cnf" <<END
[ca]
default_ca = ours
[ours]
database = $work/index
new_certs_dir = $work
default_md = sha256
policy = names
rand_serial = yes
unique_subject = no
[names]
commonName = supplied
END

# certificate FILE KEY NAME FROM UNTIL SIGNER EXTENSION...
certificate() {
    file=$1 key=$2 name=$3 from=$4 until=$5 signer=$6
    shift 6
    printf '%s\n' "$@" > "$work/extensions"
    openssl req -new -key "$key" -subj "/CN=$name" -out "$work/request"
    # $signer is several words.
    openssl ca -batch -notext -config "$work/ca.cnf" -extfile "$work/extensions" $signer \
        -startdate "$from" -enddate "$until" -in "$work/request" -out "$file"
}

openssl ecparam -name prime256v1 -genkey -noout -out "$work/authority.key"
openssl ecparam -name prime256v1 -genkey -noout -out server.key
long_ago=20200101000000Z in_long=21200101000000Z
here="subjectAltName=DNS:localhost,IP:127.0.0.1"
constraints="basicConstraints=critical,CA:FALSE"
usage="keyUsage=critical,digitalSignature"
purpose="extendedKeyUsage=serverAuth"
own="subjectKeyIdentifier=hash"
issuer="authorityKeyIdentifier=keyid"

certificate authority.pem "$work/authority.key" "authority of tests" $long_ago $in_long \
    "-selfsign -keyfile $work/authority.key" \
    "basicConstraints=critical,CA:TRUE" "keyUsage=critical,keyCertSign,cRLSign" "$own"
certificate self_signed.pem server.key localhost $long_ago $in_long \
    "-selfsign -keyfile server.key" "$here" "$constraints" "$own"
signed="-cert authority.pem -keyfile $work/authority.key"
certificate trusted.pem server.key localhost $long_ago $in_long "$signed" \
    "$here" "$constraints" "$usage" "$purpose" "$own" "$issuer"
certificate elsewhere.pem server.key elsewhere.example $long_ago $in_long "$signed" \
    "subjectAltName=DNS:elsewhere.example" "$constraints" "$usage" "$purpose" "$own" "$issuer"
certificate expired.pem server.key localhost $long_ago 20210101000000Z "$signed" \
    "$here" "$constraints" "$usage" "$purpose" "$own" "$issuer"
