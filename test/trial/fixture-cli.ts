import { z } from 'zod';
import { cliSession } from '../../src/harness/cli-session.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';

const EndLine = z.object({ type: z.literal('end'), failed: z.string().optional() });

/** A CLI that is the profile's `run` script, and tells the end of its turn by a line `{"type":"end"}`. It asks the model by `$ASK`. */
export const fixtureCli: Runner = {
  name: 'fixture-cli',
  label: 'Fixture',
  wires: ['openai-chat'],
  tellsCommands: true,
  continues: false,
  mcp: false,
  limits: [],
  open(place) {
    const { origin, token, name } = requireModel('Fixture', place);
    const body = JSON.stringify({ model: name, messages: [{ role: 'user', content: 'hello' }] });
    return cliSession(place, {
      label: 'Fixture',
      argv: () => ['bash', '-c', place.profile.run ?? ''],
      defaults: {},
      access: {
        ASK: `curl -sS -o /dev/null -H 'authorization: Bearer ${token}' -H 'content-type: application/json' -d '${body}' ${origin}/v1/chat/completions`,
      },
      files: [],
      versionFile: '/none',
      takerFor: (record) => (line) => {
        const { data } = EndLine.safeParse(line);
        if (data)
          record.told =
            data.failed === undefined ? { told: 'done' } : { told: 'agent-failed', message: data.failed };
      },
      usageCountsOn: false,
    });
  },
};
