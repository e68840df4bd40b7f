import { describe, expect, test } from 'vitest';
import { aider } from '../../runners/aider/runner.ts';
import { claudeCode } from '../../runners/claude-code/runner.ts';
import { cline } from '../../runners/cline/runner.ts';
import { codex } from '../../runners/codex/runner.ts';
import { copilot } from '../../runners/copilot/runner.ts';
import { gemini } from '../../runners/gemini-cli/runner.ts';
import { miniSweAgent } from '../../runners/mini-swe-agent/runner.ts';
import { opencode } from '../../runners/opencode/runner.ts';
import { openhands } from '../../runners/openhands/runner.ts';
import { pi } from '../../runners/pi/runner.ts';
import { qwenCode } from '../../runners/qwen-code/runner.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { Container } from '../../src/engine/container.ts';
import type { ExecRequest } from '../../src/engine/exec/exec-request.ts';
import type { HarnessContext, Runner } from '../../src/harness/runner.ts';
import { profileOf } from '../../src/suite/plan.ts';
import { exited } from './recorded-streams.ts';

const trialToken = 'token-of-this-trial';
const never = new AbortController().signal;

/** What the engine is asked to run for one turn. */
async function requestOf(runner: Runner, profile: Partial<HarnessContext['profile']>): Promise<ExecRequest> {
  const requests: ExecRequest[] = [];
  const container = {
    exec: async (request: ExecRequest) => {
      requests.push(request);
      return exited(0);
    },
  } as Partial<Container> as Container;
  const session = runner.open(placeOf(runner, container, profile));
  await session.turn('The secret prompt', { timeoutMs: 1_000, signal: never, stop: never });
  const [request] = requests;
  if (request === undefined) throw new Error('nothing was run');
  return request;
}

function placeOf(
  runner: Runner,
  container: Container,
  profile: Partial<HarnessContext['profile']>,
): HarnessContext {
  const [wire = 'openai-chat'] = runner.wires === 'any' ? [] : runner.wires;
  return {
    container,
    profile: profileOf(profile),
    env: { ...profile.env },
    workspace: '/workspace',
    home: '/offsite/harness',
    model: {
      name: 'model-1',
      wire,
      origin: 'http://127.0.0.1:1',
      token: trialToken,
      variables: {},
      contextWindow: undefined,
      maxOutputTokens: undefined,
      chat: () => Promise.reject(new Error('not asked from here')),
    },
    clock: systemClock,
  };
}

describe.each([
  aider,
  claudeCode,
  cline,
  codex,
  copilot,
  gemini,
  miniSweAgent,
  opencode,
  openhands,
  pi,
  qwenCode,
])('$label', (runner) => {
  const server = { command: 'serve', args: [], env: { KEY: 'key of a tool' } };

  test('is given neither its prompt nor any key as an argument', async () => {
    const request = await requestOf(runner, { mcpServers: { one: server } });
    const words = request.argv.join('\n');
    expect(words).not.toContain(trialToken);
    expect(words).not.toContain('secret prompt');
    expect(words).not.toContain('key of a tool');
    expect(request.stdin).toBe('The secret prompt');
    expect(Object.values(request.env ?? {})).toContain(trialToken);
  });

  test("takes the profile's arguments and environment, but its model's address from us alone", async () => {
    const env = {
      MINE: 'yes',
      PI_TELEMETRY: 'mine',
      ANTHROPIC_API_KEY: 'real',
      OPENAI_API_KEY: 'real',
      OFFSITE_MODEL_KEY: 'real',
    };
    const request = await requestOf(runner, { args: ['--mine', 'a b'], env });
    expect(request.argv.join('|')).toContain('--mine|a b');
    expect(request.env).toMatchObject({ MINE: 'yes', PI_TELEMETRY: 'mine' });
    expect(Object.values(request.env ?? {})).toContain(trialToken);
  });

  test('says what is missing where it has no model', () => {
    const place = { ...placeOf(runner, {} as Container, {}), model: undefined };
    expect(() => runner.open(place)).toThrow(
      expect.objectContaining({ code: 'MODEL_NEEDED', kind: 'input' }),
    );
  });

  test("installs the pinned version, or the profile's", () => {
    // In quotes, or as a line of a lock.
    const named = (version = '') =>
      expect.stringMatching(
        new RegExp(`(^|')${runner.cli?.package}(@|==)${version.replaceAll('.', '[.]')}('|$)`, 'm'),
      );
    expect(runner.install?.(profileOf({}))).toEqual(named(runner.cli?.version));
    expect(runner.install?.(profileOf({ version: '9.9.9' }))).toEqual(named('9.9.9'));
  });
});
