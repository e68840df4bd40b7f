import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Place } from '../cli/place.ts';

/**
 * What the tests of both doubles run: two cases on two variants, of which each solves one case. So a result
 * in another's slot shows. The variants differ only in their sandboxes, which a run's record names.
 */

const validator = `import { validate } from 'offsite/validator';
validate('looks', () => console.log('looked'));`;

/** Exit 0 if the answer is the one that the case wants. */
const verify = 'test "$(cat answer)" = "{{right}}"';

const cases = [
  { id: 'one', name: 'The first', variables: { right: 'yes' }, verify },
  { id: 'two', name: 'The second', variables: { right: 'no' }, verify, validator: { source: validator } },
];

const names = ['yes', 'no'];

const config = {
  profiles: { worker: { run: 'if [ "$(ulimit -n)" = 1000 ]; then echo yes; else echo no; fi > answer' } },
  sandboxes: {
    yes: { memory: '256m', network: 'none', nofile: 1000 },
    no: { memory: '256m', network: 'none', nofile: 2000 },
  },
  connections: { harness: { command: 'conn_command' }, sandbox: { yes: 'conn_yes', no: 'conn_no' } },
};

/** The trials of a batch in the order of `slots`: case, variant, ordinal, verdict. */
export const allTrials = ['one 0 0 true', 'one 1 0 false', 'two 0 0 false', 'two 1 0 true'];

/** Writes the suite and the configuration. Returns the arguments that name them. */
export function writeWork(place: Place, daemon: object = {}): { suite: string; config: string[] } {
  const suite = { id: 'small', prompt: 'Do it.' };
  const variants = names.map((name) => ({
    name,
    model: 'none',
    harness: 'command',
    profile: 'worker',
    sandbox: name,
  }));
  const settings = { suites: ['small'], profiles: { command: 'worker' }, poll: { min: '100ms', max: '1s' } };
  place.write('offsite.yaml', stringify({ ...config, daemon: { ...settings, ...daemon } }));
  return {
    suite: place.write('suite.yaml', stringify({ suite, trials: 1, variants, cases })),
    config: ['--config', join(place.folder, 'project', 'offsite.yaml')],
  };
}

/** The start request that somebody else sends for the same work. */
export const startedElsewhere = {
  suite: { id: 'small', name: 'Small', prompt: 'Do it.' },
  cases: cases.map(({ validator, ...one }) => ({ ...one, source: { kind: 'empty' }, tags: [] })),
  variants: names.map((name) => ({
    model: 'none',
    credentials: { harnessConnectionId: 'conn_command', sandboxConnectionId: `conn_${name}` },
  })),
  trials: 1,
  local: true,
};
