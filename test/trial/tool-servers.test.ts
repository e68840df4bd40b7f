import { describe, expect, test } from 'vitest';
import { profileOf } from '../../src/suite/plan.ts';
import { FirstOffer } from '../../src/trial/run/first-offer.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { fixtureCli } from './fixture-cli.ts';
import { sayingHello, scriptedModels } from './scripted-models.ts';
import { bench, sharedBench } from './shared-bench.ts';

const { model: modelConfig } = scriptedModels({ model: sayingHello });
const runner = { ...fixtureCli, mcp: ['stdio' as const], startsWithoutServers: true as const };
sharedBench({ models: { model: modelConfig }, runners: [runner] });

/** A line of a script that asks the model, and offers it one tool. */
const offering = (name: string) => {
  const tools = JSON.stringify([{ type: 'function', function: { name, parameters: { type: 'object' } } }]);
  return `from='"messages"'; to='"tools":${tools},"messages"'; eval "\${ASK/$from/$to}"`;
};
const ends = `echo '${JSON.stringify({ type: 'end' })}'`;

function cli(...lines: string[]): Partial<TrialSpec> {
  const mcpServers = { greeter: { command: 'greet', args: [], env: {} } };
  const profile = profileOf({ name: 'test', run: [...lines, ends].join('\n'), mcpServers });
  return { model: 'model', modelConfig, harness: 'fixture-cli', profile, verify: 'false' };
}

describe.concurrent('a trial whose agent was to have a tool server', () => {
  test('is void if its model was offered no tool of the server, and says so', async () => {
    const warns = 'echo the server greeter has failed >&2';
    const result = await bench.trial('', cli(warns, offering('shell'), offering('mcp__greeter__greet')));
    expect(result).toMatchObject({
      verdict: 'void',
      cause: {
        kind: 'harness',
        phase: 'harness',
        message:
          'fixture-cli offered its model no tool of the tool server greeter when it began: either it did not start, or it has no tools',
        output: expect.stringContaining('the server greeter has failed'),
      },
    });
    expect(result.verifySteps).toBeUndefined();
    expect(result.models?.usage).toMatchObject([{ role: 'agent', requests: 2 }]);
  });

  test('is failed whatever the agent asks or ends once it has begun with the server', async () => {
    const result = await bench.trial('', cli('eval "$ASK"', offering('greeter_greet'), offering('shell')));
    expect(result).toMatchObject({ verdict: 'failed' });
    expect(result.models?.usage).toMatchObject([{ role: 'agent', requests: 3 }]);
  });
});

describe('the first offer', () => {
  const lacking = (...requests: [startedAt: number, body: unknown][]) => {
    const offer = new FirstOffer(['my-notes']);
    for (const [startedAt, body] of requests) {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      offer.add({ role: 'agent', startedAt }, Buffer.from(text));
    }
    return offer.lacking;
  };
  const named = (name: string) => ({ tools: [{ name }] });

  test.each<[string, unknown]>([
    ['of Claude Code', named('mcp__my-notes__read')],
    ['of Gemini CLI', { tools: [{ functionDeclarations: [{ name: 'mcp_my-notes_read' }] }] }],
    ['in a namespace', { tools: [{ type: 'namespace', name: 'mcp__my_notes', tools: [] }] }],
    ['that the model is told of', { ...named('Bash'), messages: [{ content: 'mcp__my-notes__read' }] }],
  ])('finds the tools %s', (_, body) => {
    expect(lacking([1, body])).toEqual([]);
  });

  test('lacks a server that is only spoken of', () => {
    const messages = [{ content: 'Use my-notes. These servers failed: my-notes (mcp__*)' }];
    expect(lacking([1, { ...named('Bash'), messages }])).toEqual(['my-notes']);
  });

  test('is that of the request that began first, whenever it ended', () => {
    expect(lacking([2, named('shell')], [1, named('my_notes_read')], [3, named('shell')])).toEqual([]);
    expect(lacking([2, named('my_notes_read')], [1, named('shell')])).toEqual(['my-notes']);
  });

  test('says nothing of a request without tools, or one that cannot be read', () => {
    expect(lacking([1, { messages: [] }])).toEqual([]);
    expect(lacking([1, '{"tools":[{"na'], [2, named('shell')])).toEqual([]);
  });
});
