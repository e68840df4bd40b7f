import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { TlsMaterial } from './address.ts';

/**
 * Reads those of `ca.pem`, `cert.pem` and `key.pem` that exist: a server with a public certificate needs no
 * `ca.pem`.
 */
export async function readTlsFolder(folder: string): Promise<TlsMaterial> {
  const [ca, cert, key] = await Promise.all(
    ['ca.pem', 'cert.pem', 'key.pem'].map((name) => readIfThere(join(folder, name))),
  );
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new OffsiteError(`Cannot read the certificate ${path}`, {
      code: 'ENGINE_CERTIFICATE',
      kind: 'input',
      hint: 'Check DOCKER_CERT_PATH and the permissions of the file.',
      cause: error,
    });
  }
}
