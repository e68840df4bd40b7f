import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';
import { execa } from 'execa';

/** What an operator of a Temporal server with mutual TLS has: two authorities, and what they signed. */
export interface Certificates {
  /**
   * The path of a file: `server.pem`, `server-ca.pem`, `client.pem`, `client.key`, `other-ca.pem`,
   * `other.pem`.
   */
  file(name: string): string;
}

/** Makes authorities for the server, for clients and for strangers, each with one certificate. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  const openssl = execa({ cwd: folder });
  const options = ['-newkey', 'rsa:2048', '-nodes'];
  for (const name of ['server', 'client', 'other']) {
    const ca = ['-keyout', `${name}-ca.key`, '-out', `${name}-ca.pem`, '-subj', `/CN=CA of ${name}`];
    await openssl('openssl', ['req', '-x509', ...options, '-days', '2', ...ca]);
    const names = ['-addext', 'subjectAltName=DNS:localhost'];
    const request = ['-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`, ...names];
    await openssl('openssl', ['req', ...options, ...request]);
    const signed = ['-CA', `${name}-ca.pem`, '-CAkey', `${name}-ca.key`, '-CAcreateserial', '-days', '2'];
    const out = ['-copy_extensions', 'copy', '-out', `${name}.pem`];
    await openssl('openssl', ['x509', '-req', '-in', `${name}.csr`, ...signed, ...out]);
  }
  return { file: (name) => join(folder, name) };
}

export interface TlsFront extends AsyncDisposable {
  address: string;
  /** Common names of the clients that it let in. */
  clients: Set<string>;
}

/**
 * The front of a Temporal server, which lets in only clients with a certificate of the clients' authority.
 */
export async function openTlsFront(port: number, { file }: Certificates): Promise<TlsFront> {
  const read = (name: string) => readFileSync(file(name));
  const clients = new Set<string>();
  const sockets = new Set<TLSSocket>();
  const server = createServer(
    {
      key: read('server.key'),
      cert: read('server.pem'),
      ca: read('client-ca.pem'),
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['h2'],
    },
    (near) => {
      sockets.add(near);
      const name = near.getPeerCertificate().subject.CN;
      clients.add(String(name));
      const far = connect(port, '127.0.0.1');
      near.pipe(far).pipe(near);
      near.on('error', () => far.destroy()).on('close', () => sockets.delete(near));
      far.on('error', () => near.destroy());
    },
  );
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `localhost:${(server.address() as AddressInfo).port}`,
    clients,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
