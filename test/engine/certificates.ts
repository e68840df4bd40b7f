import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { execa } from 'execa';

/** Makes a certificate of an authority in the file `at`, and its key in `at`.key. Valid for two days. */
export async function authority(at: string): Promise<void> {
  const subject = `/CN=${basename(at)}`;
  await openssl(['req', '-x509', '-days', '2', '-subj', subject, '-keyout', `${at}.key`, '-out', at]);
}

/** Makes the folder `own` with `cert.pem` and `key.pem` by an authority, and with its `ca.pem`. */
export async function certificate(own: string, issuer: string, extension: string): Promise<void> {
  await mkdir(own);
  const [request, extensions] = [join(own, 'request.pem'), join(own, 'extensions')];
  await openssl(['req', '-subj', `/CN=${basename(own)}`, '-keyout', join(own, 'key.pem'), '-out', request]);
  await writeFile(extensions, extension);
  await execa('openssl', [
    'x509',
    '-req',
    '-in',
    request,
    '-CA',
    issuer,
    '-CAkey',
    `${issuer}.key`,
    '-CAcreateserial',
    '-days',
    '2',
    '-extfile',
    extensions,
    '-out',
    join(own, 'cert.pem'),
  ]);
  await execa('cp', [issuer, join(own, 'ca.pem')]);
}

function openssl([command = '', ...args]: string[]) {
  return execa('openssl', [command, '-newkey', 'rsa:2048', '-nodes', ...args]);
}
