import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Place } from '../cli/place.ts';
import type { Party } from './hostile-parties.ts';
import { attacks, hostileName, hostileText } from './hostile-text.ts';

/** An attack as an argument or the name of a file can have it. */
export const name = (attack: string) => attack.toWellFormed().replaceAll('\0', '');
const shellName = name(hostileText).replaceAll("'", '');
/** Prints it in a sandbox. */
export const say = `printf '%s\\n' '${shellName}' '::stop-commands::x' '##[error]y' >&2`;

/** A suite whose names, scripts and files are hostile; its models are at this party. */
export function hostileSuite(place: Place, model: Party): string {
  return place.suite({
    cases: [
      { id: name(attacks.stop), verify: `${say}; false`, variables: { act: say } },
      { id: hostileName, prepare: `${say}; exit 3`, verify: 'true' },
      {
        id: 'files',
        verify: 'true',
        variables: { act: "touch ':x' \"$(printf '\\033]52;c;x\\007\\n::y')\"" },
      },
    ],
    variants: [{ name: hostileName, model: 'none', harness: 'command', profile: 'worker' }],
    config: {
      models: {
        [hostileName]: { wire: 'openai-chat', baseUrl: `${model.url}/v1`, aliases: [name(attacks.osc52)] },
        wild: { wire: 'openai-chat', baseUrl: `${model.url}/v1` },
      },
      daemon: { suites: [hostileName] },
      // gVisor has no filter, and a kernel of its own.
      sandboxes: { local: { seccomp: 'if-available' } },
    },
  });
}

/** Tasks whose names, texts and keys are hostile, and a task that cannot be read. */
export function hostileTasks(place: Place): string {
  const folder = `sets/${hostileName.replaceAll('/', '').slice(0, 80)}`;
  const key = JSON.stringify(hostileName);
  const toml = `[task]\n${key} = ${key}\n[environment]\ndocker_image = ${key}\nskills_dir = "/s"\n`;
  for (const name of ['task.toml', 'instruction.md', 'tests/test.sh'])
    place.write(`${folder}/${name}`, name === 'task.toml' ? toml : hostileText);
  place.write(`${folder} unreadable/task.toml`, `[environment]\ncpus = ${key}\n[agent]\nuser = [${key}]\n`);
  const row = { instance_id: hostileName, [hostileName]: 1 };
  const texts = { repo: hostileName, problem_statement: hostileText, test_patch: hostileText };
  const whole = { ...row, ...texts, base_commit: 'a', FAIL_TO_PASS: [hostileName], PASS_TO_PASS: [] };
  place.write('sets/rows.jsonl', `${JSON.stringify(row)}\n`);
  place.write('sets/whole.jsonl', `${JSON.stringify(whole)}\n`);
  return join(place.folder, 'project', 'sets');
}

/** A configuration of one model, at this party. */
export function modelAt(place: Place, { url }: Party): string[] {
  const models = { [hostileName]: { wire: 'openai-chat', baseUrl: `${url}/v1` } };
  return ['--config', place.write('one-model.yaml', stringify({ models }))];
}
