import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { yamlFiles } from '../bounds/suite.ts';

/** The commands that most people need, in groups, each with one line. `help --all` lists all of them. */
const groups: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Start: {
    quickstart: 'run an example suite; it needs no model and no key',
    init: 'write a first suite and configuration into this folder',
    check: 'check a suite without an agent: is its grading sound?',
    run: 'run a suite: every case on every variant, in sandboxes',
    resume: 'continue what was stopped',
  },
  Look: {
    show: 'show a batch, a run or a trial, and why it failed',
    view: 'show batches and trials in the browser',
    compare: 'compare two batches: better, worse, or noise?',
    export: 'write a batch for others: records, a page, spans',
    audit: 'check that results are what they are said to be',
  },
  'Run unattended': {
    daemon: 'run trials that others have queued, until stopped',
    fleet: 'run batches on many machines at once',
    serve: 'serve the embedded Eval Service over HTTP',
  },
  'Set up': {
    models: 'list, add and try the models of offsite.yaml',
    doctor: 'say what this machine lacks to run trials',
  },
};

/**
 * The help of the whole program, for a screen of 80 x 24.
 *
 * @param documents the folder of the documents; undefined if it is not known
 */
export function frontDoor(documents: string | undefined): string {
  const width = Math.max(
    ...Object.values(groups).flatMap((all) => Object.keys(all).map((name) => name.length)),
  );
  const lines = Object.entries(groups).flatMap(([title, all]) => [
    `${title}:`,
    ...Object.entries(all).map(([name, what]) => `  ${name.padEnd(width)}  ${what}`),
  ]);
  return [
    'offsite COMMAND runs evaluation trials of coding agents in sealed sandboxes.',
    ...lines,
    'One command: offsite COMMAND --help. All: offsite help --all',
    ...(documents === undefined ? [] : [`Documents: ${documents}docs`]),
  ].join('\n');
}

/** Whether a command line asks for the help of the whole program. */
export function asksForAll(argv: readonly string[]): boolean {
  return ['help', '--help', '-h'].includes(argv.join(' '));
}

/** Folders in which a suite is looked for, and how many files of each. */
const places = ['.', 'evals'];
const filesRead = 50;

/** What a person would do next in a folder, by what is in it. */
export function nextStep(folder: string): string {
  const suite = places.flatMap((place) => suitesIn(folder, place))[0];
  if (suite === undefined) return 'Next: offsite quickstart, or offsite init for a first suite of your own';
  return `Next: offsite check ${suite}, then offsite run ${suite}`;
}

function suitesIn(folder: string, place: string): string[] {
  try {
    const names = readdirSync(join(folder, place)).filter((name) => /\.ya?ml$/.test(name));
    return names
      .slice(0, filesRead)
      .map((name) => join(place, name))
      .filter((path) => isSuite(join(folder, path)));
  } catch {
    return [];
  }
}

function isSuite(path: string): boolean {
  if (!statSync(path).isFile() || statSync(path).size > yamlFiles.bytes.file) return false;
  const text = readFileSync(path, 'utf8');
  return /^suite:/m.test(text) && /^cases:|^tasks:/m.test(text);
}
