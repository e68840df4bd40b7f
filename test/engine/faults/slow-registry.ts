import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

/** A registry on loopback with one image, whose layer it holds back in the middle until told. */
export interface SlowRegistry extends AsyncDisposable {
  /** The image, as an engine on this machine pulls it. */
  image: string;
  /** Resolves once half of the layer was sent and the rest is being held back. */
  halfway: Promise<void>;
  /** Sends rests at once from now on. */
  release(): void;
}

export async function slowRegistry(): Promise<SlowRegistry> {
  const { manifest, blobs } = await handMadeImage();
  const { promise: halfway, resolve: reachedHalf } = Promise.withResolvers<void>();
  let held = true;
  const server = createServer(async (request, response) => {
    response.on('error', () => undefined);
    const [, reference] = /\/(?:manifests|blobs)\/(.+)$/.exec(request.url ?? '') ?? [];
    const content = request.url?.includes('/manifests/') ? manifest : blobs.get(reference ?? '');
    if (request.url === '/v2/') return void response.end('{}');
    if (content === undefined) return void response.writeHead(404).end();
    response.writeHead(200, {
      'content-type': content === manifest ? manifestType : 'application/octet-stream',
      'content-length': content.length,
      'docker-content-digest': digestOf(content),
    });
    if (request.method === 'HEAD') return void response.end();
    if (content.length < 100_000 || !held) return void response.end(content);
    response.write(content.subarray(0, content.length / 2), () => reachedHalf());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    image: `127.0.0.1:${(server.address() as AddressInfo).port}/slow/image:1`,
    halfway,
    release() {
      held = false;
      server.closeAllConnections();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

/** One layer with one file, too random to be compressed. */
async function handMadeImage() {
  const archive = pack();
  archive.entry({ name: 'file' }, randomBytes(1_000_000));
  archive.finalize();
  const root = await buffer(archive);
  const layer = gzipSync(root);
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: [digestOf(root)] },
      history: [{ created: '2020-01-01T00:00:00Z' }],
    }),
  );
  const part = (content: Buffer, mediaType: string) => ({
    mediaType,
    size: content.length,
    digest: digestOf(content),
  });
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: part(config, 'application/vnd.docker.container.image.v1+json'),
      layers: [part(layer, 'application/vnd.docker.image.rootfs.diff.tar.gzip')],
    }),
  );
  const blobs = new Map([config, layer, manifest].map((content) => [digestOf(content), content]));
  return { manifest, blobs };
}
