import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Redactor } from '../../src/redaction/redactor.ts';
import { offsiteHere as offsite } from './offsite.ts';
import { openPlace } from './place.ts';

const key = 'sk-very-secret/0123456789+abc';

/** A model that repeats the key it was shown in its answer, as a careless proxy would. */
async function echoingModel() {
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    request.resume().on('end', () => {
      const message = { role: 'assistant', content: `you sent ${request.headers.authorization}` };
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({
          model: 'echo-1',
          choices: [{ index: 0, message, finish_reason: 'stop' }],
          usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
        }),
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    seen,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('a model’s key reaches the model and is nowhere else: not in the sandbox, what is printed, or anything that is kept', async () => {
  await using model = await echoingModel();
  using place = openPlace();
  const ask = `curl -sS -H "authorization: Bearer $OPENAI_API_KEY" -H "content-type: application/json" -d '{"model":"echo","messages":[{"role":"user","content":"hi"}]}' "$OPENAI_BASE_URL/chat/completions" | tee answer.json`;
  const suite = place.suite({
    cases: [{ id: 'a', verify: 'test -s answer.json', artifacts: ['**'] }],
    variants: [{ name: 'v', model: 'echo', harness: 'command', profile: 'worker' }],
    // Everything that a program in the sandbox can look at: its environment, and that of all processes.
    run: `${ask}\nenv > env.txt\ncat /proc/[0-9]*/environ /proc/[0-9]*/cmdline > processes.txt 2> /dev/null || true\ngrep -rl "${key.slice(3)}" / --exclude-dir=proc --exclude-dir=sys 2> /dev/null || true`,
    config: {
      models: {
        echo: { wire: 'openai-chat', baseUrl: model.baseUrl, apiKeyEnv: 'ECHO_KEY', record: 'full' },
      },
    },
  });
  const { exitCode, stdout, stderr } = await offsite(place, ['run', suite, '--json'], {
    env: { ECHO_KEY: key },
  });
  expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
  expect(model.seen).toEqual([`Bearer ${key}`]);
  expect(JSON.parse(stdout)).toMatchObject({ passed: 1, tokens: 10 });

  // The suite itself holds a part of it, as what to look for; the data folder holds what was kept of the
  // suite and of the trial.
  const redactor = new Redactor([key]);
  const holds = (content: Buffer) => redactor.find(content) !== undefined;
  expect(holds(Buffer.from(`${stdout}${stderr}`))).toBe(false);
  const files = readdirSync(place.dataFolder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) {
    const path = join(file.parentPath, file.name);
    expect([path, holds(readFileSync(path))]).toEqual([path, false]);
  }
});
