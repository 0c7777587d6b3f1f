# One authority that nobody trusts but the tests, and what servers may show: each leaf for *.hostile.test unless its name says otherwise.
set -e
curve="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
openssl req -x509 $curve -sha256 -days 36500 -subj "/CN=Hostile test authority" -keyout ca.key -out ca.pem
openssl ecparam -name prime256v1 -genkey -noout -out leaf.key
leaf() { # name, subject alternative name, not before, not after, further options
  openssl req -new -key leaf.key -subj "/CN=$1" -out $1.csr
  printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\n%s' "$2" "$6" > ext
  mkdir -p db; : > db/index.txt; echo 1000 > db/serial
  printf '[ca]\ndefault_ca=d\n[d]\ndatabase=db/index.txt\nserial=db/serial\nnew_certs_dir=db\npolicy=p\ndefault_md=%s\nunique_subject=no\n[p]\ncommonName=supplied\n' "${5:-sha256}" > conf
  openssl ca -batch -config conf -cert ca.pem -keyfile ca.key -in $1.csr -extfile ext -startdate $3 -enddate $4 -out $1.pem -notext
}
leaf good  "DNS:*.hostile.test" 20260101000000Z 21260101000000Z
leaf expired "DNS:*.hostile.test" 20200101000000Z 20210101000000Z
leaf future "DNS:*.hostile.test" 21200101000000Z 21260101000000Z
leaf other "DNS:other.test" 20260101000000Z 21260101000000Z
leaf sha1 "DNS:*.hostile.test" 20260101000000Z 21260101000000Z sha1
leaf client "DNS:*.hostile.test" 20260101000000Z 21260101000000Z sha256 'extendedKeyUsage=clientAuth
'
openssl req -x509 -key leaf.key -sha256 -days 36500 -subj "/CN=self" -addext "subjectAltName=DNS:*.hostile.test" -out self-signed.pem
for c in ca good expired future other sha1 client self-signed; do openssl x509 -in $c.pem -outform DER -out $c.der; done
openssl pkcs8 -topk8 -nocrypt -in leaf.key -outform DER -out leaf-key.der
