import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { offsite } from '../offsite.ts';
import { openPlace } from '../place.ts';

/** Mistakes that only a trial shows. */
describe.concurrent('a run tells the cause of', () => {
  test('a model that refuses the key, and what to check', async () => {
    const server = createServer((_, response) => {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    using place = openPlace();
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const suite = place.suite({
      cases: [{ id: 'a', verify: 'true' }],
      variants: [{ model: 'm', harness: 'bash' }],
      config: { models: { m: { wire: 'openai-chat', baseUrl } } },
    });
    const { exitCode, stderr } = await offsite(place, ['run', suite]);
    server.close();
    expect(exitCode).toBe(3);
    expect(stderr).toContain('model, in harness: the model m refused the request (401): no');
    expect(stderr).toContain(
      'Check the key in the variable that apiKeyEnv names, its permissions, and auth.',
    );
  });

  test('a validator that imports what is not there', async () => {
    using place = openPlace();
    place.write('validator.ts', "import x from 'not-there';\nconsole.log(x);\n");
    const suite = place.suite({
      cases: [{ id: 'a', validator: { file: 'validator.ts' }, variables: { act: ':' } }],
    });
    const { exitCode, stderr } = await offsite(place, ['run', suite]);
    expect(exitCode).toBe(3);
    expect(stderr).toContain("the validator could not be loaded: Cannot find package 'not-there'");
  });

  test('an install that fails, without what npm says after it', async () => {
    using place = openPlace();
    const notices = Array.from({ length: 9 }, (_, line) => `npm notice line ${line}`);
    const said = [
      'npm error code E404',
      'npm error 404 Not Found - GET https://x/y',
      'npm error 404',
      ...notices,
    ];
    const suite = place.suite({
      cases: [{ id: 'a', verify: 'true' }],
      variants: [{ model: 'none', harness: 'command', profile: 'broken' }],
      config: {
        profiles: {
          broken: { run: 'true', install: `cat <<'END'\n${said.join('\n')}\nEND\nexit 1` },
        },
      },
    });
    const { exitCode, stderr } = await offsite(place, ['run', suite]);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('npm error 404 Not Found - GET https://x/y');
    expect(stderr).not.toContain('npm notice');
  });
});
