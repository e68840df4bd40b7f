import { Document, isCollection, isMap, isScalar, isSeq, parseDocument, Scalar } from 'yaml';
import { OffsiteError } from '../base/offsite-error.ts';
import { SuiteFile } from '../suite/suite-file.ts';
import { promptPlaceholder } from '../suite/variables.ts';
import { exactYaml, yamlFileOf } from '../suite/yaml-file.ts';
import type { Change } from './read-change.ts';

export interface NewCase {
  id: string;
  change: Change;
  /** The repository, as the suite names it. */
  git: string;
  /** A script that gets the dependencies. */
  prepare: string | undefined;
  /** A command that runs the tests. */
  test: string;
  /** The variables of the suite's prompt. A person writes their values. */
  variables: readonly string[];
}

/** The folder of a case's files, relative to the suite. */
export function caseFolder(id: string): string {
  return `cases/${id}`;
}

/** The case as an item of the suite's list, not indented. */
export function caseText({ id, change, git, prepare, test, variables }: NewCase): string {
  const folder = caseFolder(id);
  const hasTests = change.tests.files.length > 0;
  const document = new Document([
    {
      id,
      name: oneLine(change.title),
      variables: Object.fromEntries(variables.map((name) => [name, `${promptPlaceholder}\n`])),
      source: { git, ref: change.before },
      ...(prepare !== undefined && { prepare: `${prepare}\n` }),
      tests: {
        in: 'fresh',
        brings: 'workspace',
        ...(hasTests && { patch: { source: { file: `${folder}/tests.patch` }, base: change.before } }),
        command: ['bash', '-c', gradingScript(test)],
        rewards: { json: '/logs/verifier/reward.json', text: '/logs/verifier/reward.txt' },
      },
      solution: {
        command: ['git', 'apply', '--whitespace=nowarn', '/solution/solution.patch'],
        files: { '/solution/solution.patch': `${folder}/solution.patch` },
      },
    },
  ]);
  const item = document.getIn([0], true);
  for (const { key } of isMap(item) ? item.items : []) {
    const comment = isScalar(key) ? comments[String(key.value)] : undefined;
    if (isScalar(key) && comment !== undefined) key.commentBefore = ` ${comment}`;
  }
  for (const path of onOneLine) {
    const node = document.getIn([0, ...path], true);
    if (isCollection(node)) node.flow = true;
  }
  const asked = document.getIn([0, 'variables'], true);
  for (const { value } of isMap(asked) ? asked.items : [])
    if (isScalar(value)) value.type = Scalar.BLOCK_LITERAL;
  return document.toString({ ...exactYaml, flowCollectionPadding: true });
}

/** The comments above the keys of the case. */
const comments: Readonly<Record<string, string>> = {
  variables: 'Write what the agent is asked, as a person would: what is wrong or wanted, not how to do it.',
  source: 'The repository as it was before the change.',
  prepare: 'Runs once, with network, before the agent.',
  tests: 'The tests of the change, which the agent does not see. They are put in place when it has ended.',
  solution: 'The change itself, for offsite check.',
};

const onOneLine = [
  ['source'],
  ['tests', 'patch'],
  ['tests', 'command'],
  ['tests', 'rewards'],
  ['solution', 'command'],
  ['solution', 'files'],
];

/** Runs the tests, and writes whether they passed. */
function gradingScript(test: string): string {
  return `if ${test}; then reward=1; else reward=0; fi; echo $reward > /logs/verifier/reward.txt`;
}

/** A title on one line, without unusual characters: anybody may have written a commit's subject. */
function oneLine(title: string): string {
  return (
    title
      .replaceAll(/[^\p{L}\p{N}\p{P}\p{S} ]+/gu, ' ')
      .trim()
      .slice(0, 100)
      .toWellFormed() || 'change'
  );
}

/**
 * The text of a suite with a case at the end of its list. All else stays as it is written.
 *
 * @param item the case as an item of a list, not indented
 */
export function withCase(text: string, item: string, file: string): string {
  const changed = insertedInto(text, item);
  // Parses the new text as well, so that a wrong insertion is not written.
  const cases =
    changed === undefined ? [] : (yamlFileOf(changed, { file, schema: SuiteFile }).value.cases ?? []);
  const before = yamlFileOf(text, { file, schema: SuiteFile }).value.cases ?? [];
  if (changed === undefined || cases.length !== before.length + 1)
    throw new OffsiteError(`${file} has no list of cases in which a case can be written`, {
      code: 'SUITE_NOT_CHANGED',
      kind: 'input',
      hint: 'Write `cases:` as a list with one item a line, as in docs/suites.md.',
    });
  return changed;
}

function insertedInto(text: string, item: string): string | undefined {
  const { contents } = parseDocument(text, { uniqueKeys: false });
  if (!isMap(contents)) return undefined;
  const cases = contents.get('cases', true);
  const ended = text === '' || text.endsWith('\n') ? text : `${text}\n`;
  if (cases === undefined && !contents.flow) return `${ended}\ncases:\n${indented(item, 2)}`;
  const last = isSeq(cases) ? cases.items.at(-1) : undefined;
  if (!isSeq(cases) || cases.flow || !cases.range || !isMap(last) || !last.range) return undefined;
  const column = cases.range[0] - text.lastIndexOf('\n', cases.range[0] - 1) - 1;
  // The end of the last value may be in the middle of its line, before a comment.
  const end = last.range[1];
  const atLine = end === 0 || text[end - 1] === '\n' ? end : text.indexOf('\n', end) + 1;
  const at = atLine === 0 ? ended.length : atLine;
  return `${ended.slice(0, at)}\n${indented(item, column)}${ended.slice(at)}`;
}

function indented(item: string, column: number): string {
  return item.replaceAll(/^(?=.)/gm, ' '.repeat(column));
}
