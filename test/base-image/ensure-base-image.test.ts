import { mkdtempDisposable } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { ensureBaseImage } from '../../src/base-image/ensure-base-image.ts';
import { baseImageName, baseImageRecipe } from '../../src/base-image/recipe.ts';
import { openClient } from '../../src/engine/docker/client.ts';
import { dockerPort } from '../../src/engine/docker/open.ts';

/** A server of the Engine API's wire, on a socket as the real one's, that answers as the test needs. */
async function engineThat(listener: RequestListener) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'offsite-image-'));
  const socketPath = join(folder.path, 'engine.sock');
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    request.resume();
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const client = openClient({ kind: 'socket', path: socketPath }, systemClock);
  return {
    port: dockerPort(client),
    asked,
    async [Symbol.asyncDispose]() {
      client.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await folder.remove();
    },
  };
}

const name = baseImageName(baseImageRecipe);
const json = (value: unknown) => JSON.stringify(value);

describe('pulling', () => {
  test('fails when the engine streams an error after saying 200', async () => {
    await using engine = await engineThat((_, response) => {
      response.write('{"status":"Pulling from library/node"}\n');
      response.end('{"errorDetail":{"message":"toomanyrequests"},"error":"toomanyrequests"}\n');
    });
    await expect(engine.port.images.pull('node:24')).rejects.toThrow('toomanyrequests');
  });

  test('fails soon when no registry answers', async () => {
    await using engine = await engineThat(() => undefined);
    const pulling = engine.port.images.pull('node:24', { firstWordMs: 50 });
    await expect(pulling).rejects.toThrow('no registry answered within 0.05 s');
  });

  test('fails in plain words when the engine knows at once', async () => {
    await using engine = await engineThat((_, response) => {
      response.writeHead(500, { 'content-type': 'application/json' }).end(json({ message: 'no such host' }));
    });
    const pulling = engine.port.images.pull('node:24');
    await expect(pulling).rejects.toThrow(/^Could not pull node:24: no such host$/);
  });

  test('goes on past the deadline of the first word', async () => {
    await using engine = await engineThat((_, response) => {
      response.write('{"status":"Pulling"}\n');
      setTimeout(() => response.end('{"status":"Status: Downloaded"}\n'), 120);
    });
    await engine.port.images.pull('node:24', { firstWordMs: 60 });
  });
});

describe('the base image', () => {
  test('that is there is used, with two questions to the engine', async () => {
    await using engine = await engineThat((_, response) => response.end(json({ Id: 'sha256:1' })));
    const image = await ensureBaseImage({ engine: engine.port, log: () => undefined });
    expect(image).toEqual({ id: 'sha256:1', name, alias: 'offsite/base:latest', built: 'already there' });
    expect(engine.asked).toEqual([`GET /images/${name}/json`, 'GET /images/offsite/base:latest/json']);
  });

  test('becomes the latest where another recipe was', async () => {
    await using engine = await engineThat((request, response) => {
      response.end(json({ Id: request.url?.includes('latest') ? 'sha256:old' : 'sha256:new' }));
    });
    await ensureBaseImage({ engine: engine.port, log: () => undefined });
    expect(engine.asked.at(-1)).toContain(`POST /images/${name}/tag?repo=offsite%2Fbase&tag=latest`);
  });

  test('has pip that could not fetch uv: the user is told', async () => {
    await using engine = await engineThat((request, response) => {
      const isBuild = request.url?.includes('/build') === true;
      response.end(
        isBuild
          ? '{"stream":"offsite-without-uv\\n"}\n{"aux":{"ID":"sha256:1"}}\n'
          : json({ Id: 'sha256:1' }),
      );
    });
    const lines: string[] = [];
    const log = (line: string) => lines.push(line);
    await ensureBaseImage({ engine: engine.port, log, force: true });
    expect(lines.at(-1)).toContain('The image has no uv');
  });

  test('that can neither be pulled nor built is an error that gives both reasons and what to do', async () => {
    await using engine = await engineThat((request, response) => {
      if (request.url === '/info') response.end(json({ Architecture: 'riscv64' }));
      else response.writeHead(request.method === 'GET' ? 404 : 500).end(json({ message: 'no such host' }));
    });
    const lines: string[] = [];
    const making = ensureBaseImage({ engine: engine.port, log: (line) => lines.push(line) });
    await expect(making).rejects.toMatchObject({
      code: 'BASE_IMAGE_UNAVAILABLE',
      message: expect.stringMatching(/no such host.*the engine runs riscv64/s),
      hint: expect.stringContaining(baseImageRecipe.registryImage),
    });
    expect(lines).toContain('Making it from Debian packages instead.');
  });

  test('is not looked for any longer than the user wants', async () => {
    const controller = new AbortController();
    await using engine = await engineThat(() => controller.abort(new Error('enough')));
    const { signal } = controller;
    const making = ensureBaseImage({ engine: engine.port, log: () => undefined, signal });
    await expect(making).rejects.toThrow('enough');
  });
});
