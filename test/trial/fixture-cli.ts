import { z } from 'zod';
import { cliSession } from '../../src/harness/cli-session.ts';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import { type Runner, requireModel } from '../../src/harness/runner.ts';
import type { TurnRecord } from '../../src/harness/turn-record.ts';

const EndLine = z.object({
  type: z.literal('end'),
  failed: z.string().optional(),
  modelFailed: z.string().optional(),
});

/**
 * A CLI that is the profile's `run` script. It reports a tool by a line `{"type":"tool","input":…}`, and the
 * end of its turn by a line `{"type":"end"}`. It asks the model by `$ASK`, and by `$ASK_ON` once more in the
 * same conversation.
 */
export const fixtureCli = fixtureCliOf((record) => (line, at) => {
  if (line.type === 'tool') return record.beginTool('tool', 'edit', line.input, at);
  const { failed, modelFailed } = EndLine.parse(line);
  if (failed !== undefined) record.status = { kind: 'agent-failed', message: failed };
  else if (modelFailed !== undefined) record.status = { kind: 'model-failed', message: modelFailed };
  else record.status = { kind: 'done' };
});

/** The same with a reader of other lines. */
export function fixtureCliOf(takerFor: (record: TurnRecord) => LineTaker): Runner {
  return {
    name: 'fixture-cli',
    label: 'Fixture',
    wires: ['openai-chat'],
    reportsCommands: true,
    continues: false,
    mcp: [],
    limits: [],
    open(place) {
      const { origin, token, name } = requireModel('Fixture', place);
      const first = { role: 'user', content: 'hello' };
      const further = [first, { role: 'assistant', content: 'hello' }, { role: 'user', content: 'go on' }];
      const ask = (messages: object[]) =>
        `curl -sS -o /dev/null -H 'authorization: Bearer ${token}' -H 'content-type: application/json' -d '${JSON.stringify({ model: name, messages })}' ${origin}/v1/chat/completions`;
      return cliSession(place, {
        label: 'Fixture',
        argv: () => ['bash', '-c', place.profile.run ?? ''],
        defaults: {},
        access: { ASK: ask([first]), ASK_ON: ask(further) },
        files: [],
        versionFile: '/none',
        takerFor,
        usageIsCumulative: false,
      });
    },
  };
}
