import { printedText } from '../bounds/anyone.ts';
import type { Judgment, Validation } from '../contract/validation.ts';
import type { TrialRecord } from './trial-record.ts';

/** How many characters to show of what a program printed or a judge said. */
const shownCharacters = 200;

/** How many characters of a command to show. */
const commandCharacters = 60;

/**
 * The lines are what a program printed, perhaps an agent's, so each pattern reads a line once, from its
 * beginning or for a word, and no further than people read.
 */
const errorWord = /(?:Error|Exception)\b/;
const beforeName = /^\s*(?:E\s+)?(?:Uncaught\s+)?[\w.$:]*$/;
const errorStart = /^\s*(?:error|fatal|panic|not ok|FAIL)\b/;

/** How test runners begin the message of a failed assertion that names no error. */
const pytestLine = /^E {3,}\S/;
const jestLine = /^\s*expect\(\w+(?:\.fn\(\))?\)\.\w/;
const goLine = /^\s+\S+_test\.go:\d+: \S/;
const rustLine = /^thread '[^']*' (?:\(\d+\) )?panicked at .+:$/;
const tapBlock = /^(\s+)error: \|-?$/;
const tapValue = /^\s+error: (['"]\S.*)$/;
const assertions = [pytestLine, jestLine, goLine, rustLine, tapBlock, tapValue];

/** Whether a line says what an error is: its name, a colon, its message. */
function saysError(line: string): boolean {
  if (assertions.some((pattern) => pattern.test(line))) return true;
  const word = errorWord.exec(line);
  if (!word || !beforeName.test(line.slice(0, word.index))) return false;
  const rest = line.slice(word.index + word[0].length);
  // testify prints where before what.
  if (rest.startsWith(' Trace:')) return false;
  const [colon, parenthesis] = [rest.indexOf(':'), rest.indexOf('(')];
  const isFirst = colon !== -1 && (parenthesis === -1 || colon < parenthesis);
  return isFirst && rest.slice(colon + 1).trim() !== '';
}

/** Whether a line names an error, as most languages and test runners print it. */
function namesError(line: string): boolean {
  if (errorStart.test(line)) return true;
  const word = errorWord.exec(line);
  return word !== null && line.slice(word.index + word[0].length).trim() !== '';
}

/**
 * Why a trial failed: one line for each verify step, validation and judgment that failed, and then how the
 * harness ended, if it did not end as it should.
 */
export function failuresOf(result: TrialRecord): string[] {
  const ending = harnessFailure(result);
  return [...failedChecks(result), ...(ending === undefined ? [] : [ending])];
}

/**
 * How the harness of a trial that did not pass ended, with what it printed. Undefined if it ended by itself
 * with exit code 0, or if the trial's cause says how it ended.
 */
export function harnessFailure(result: TrialRecord): string | undefined {
  const { verdict, harness, cause } = result;
  if (!harness || verdict === 'passed' || cause?.phase === 'harness') return undefined;
  switch (harness.ended) {
    case 'exited':
      return harness.exitCode === 0 ? undefined : `harness: ${exitText(result, harness.exitCode)}`;
    case 'timed-out':
      return `harness: ended after ${Math.round(harness.afterMs / 1000)} s: its time was up`;
    case 'out-of-disk':
      return 'harness: the sandbox ran out of disk space';
    case 'out-of-memory':
      return 'harness: the sandbox ran out of memory';
    default:
      return `harness: ${firstLine(harness.message, shownCharacters)}`;
  }
}

/** The exit code, with the command that ended so, if the harness is a script of a profile. */
function exitText({ harnessTellsCommands, trajectory, harnessOutput }: TrialRecord, code: number): string {
  const last = harnessTellsCommands === false ? trajectory?.at(-1) : undefined;
  if (last === undefined) return `exited ${code}${reasonSuffix(harnessOutput)}`;
  return `${firstLine(last.command, commandCharacters)} exited ${code}${reasonSuffix(last.output)}`;
}

function failedChecks({ verifySteps = [], validations = [], judgments = [] }: TrialRecord): string[] {
  const steps = verifySteps
    .filter(({ exitCode }) => exitCode !== 0)
    // Steps that cannot be read come first: no work makes them pass.
    .toSorted((one, other) => Number(other.unreadable ?? false) - Number(one.unreadable ?? false))
    .map(
      ({ command, exitCode, output, unreadable }) =>
        `verify: ${firstLine(command, commandCharacters)} ` +
        (unreadable
          ? `cannot be read by bash${parserSaid(output)}`
          : `exited ${exitCode}${reasonSuffix(output)}`),
    );
  const failed = validations
    .filter(({ exitCode = 0 }) => exitCode !== 0)
    .toSorted((one, other) => Number(isIntegrity(other)) - Number(isIntegrity(one)))
    .map(
      ({ name, message, kind, logs = [] }) =>
        `validation "${name}": ${firstLine(message ?? 'failed', shownCharacters)}` +
        // The message of tests is their reward alone.
        `${kind === 'tests' ? reasonSuffix(logs.map(({ value }) => value?.text ?? '').join('\n')) : ''}`,
    );
  const judged = judgments
    // The rewards of tests are shown with the tests.
    .filter((judgment) => judgment.evaluator !== 'tests' && !reachesThreshold(judgment))
    .map((judgment) => `judgment "${judgment.name}": ${scoreText(judgment)}${reasonSuffix(judgment.reason)}`);
  const isBroken = validations.some((one) => isIntegrity(one) && one.exitCode !== 0);
  return isBroken ? [...failed, ...steps, ...judged] : [...steps, ...failed, ...judged];
}

/** Whether a validation is Offsite's own: once it failed, the other checks prove nothing. */
function isIntegrity({ kind }: Pick<Validation, 'kind'>): boolean {
  return kind === 'protected' || kind === 'tampering';
}

/** What bash's parser said, without its line number, which is not one of the script. */
function parserSaid(output: string): string {
  const [, said] = /^.*?: line \d+: (.+)$/m.exec(output) ?? [];
  return said === undefined ? '' : `: ${shortened(said, shownCharacters)}`;
}

function firstLine(text: string, characters: number): string {
  const lines = text.trim().split('\n');
  const first = messageAt(lines, 0);
  const isAll = lines.every((line) => line.trim() === '' || first.includes(line.trim()));
  return `${shortened(first, characters)}${isAll || first.length > characters ? '' : ' …'}`;
}

/**
 * The message that begins with a line, on one line: half of it may read as the opposite. It has several lines
 * if the first one announces them, by a colon for one, or if the frames of a stack follow it.
 */
function messageAt(lines: readonly string[], at: number): string {
  const read = lines
    .slice(Math.max(0, at), at + messageLines)
    .map((line) => line.slice(0, printedText.bytes.line));
  const [first = '', ...more] = read;
  const block = tapBlock.exec(first)?.[1];
  if (block !== undefined) return joined(until(more, (line) => !line.startsWith(`${block} `)));
  const value = tapValue.exec(first)?.[1];
  if (value !== undefined) return value;
  if (pytestLine.test(first))
    return joined(
      until(read, (line) => !/^E\b/.test(line)),
      /^E\s+/,
    );
  const isOpen = first.trimEnd().endsWith(':') || jestLine.test(first);
  const end = more.findIndex((line) => afterMessage.test(line));
  if (end !== -1 && (isOpen || stackFrame.test(more[end] ?? '')))
    return joined([first, ...more.slice(0, end)]);
  if (!isOpen) return first.trim();
  const paragraph = firstParagraph(more);
  return joined([first, ...(paragraph[0]?.trim().startsWith(legend) ? more : paragraph)]);
}

/** How many lines of a message are looked at. */
const messageLines = 60;

/** What follows a message: a stack, an excerpt of the code, a rule, the end of a test. */
const stackFrame = /^\s+at \S/;
const afterMessage = /^\s+at \S|^\s*>?\s*\d+ ?\||^\s*❯ |^(?:---|===|FAIL\b|ok\b|not ok\b|note: )/;

/** The lines before the first such line that is not empty. */
function until(lines: readonly string[], isAfter: (line: string) => boolean): readonly string[] {
  const at = lines.findIndex((line) => line.trim() !== '' && isAfter(line));
  return at === -1 ? lines : lines.slice(0, at);
}

function firstParagraph(lines: readonly string[]): string[] {
  const from = lines.findIndex((line) => line.trim() !== '');
  if (from === -1) return [];
  const length = lines.slice(from).findIndex((line) => line.trim() === '');
  return lines.slice(from, length === -1 ? undefined : from + length);
}

/** Lines as one. Of a difference, which may be long, its first lines stand for it. */
function joined(lines: readonly string[], prefix = /^/): string {
  const said = lines.map((line) => line.replace(prefix, '').trim()).filter((line) => line !== '');
  const difference = said.findIndex((line) => line.startsWith(legend));
  if (difference === -1) return said.join(' ');
  return [...said.slice(0, difference), firstDifference(said.slice(difference + 1))].join(' ').trim();
}

/** The line above a difference that Node's assertions print. */
const legend = '+ actual - expected';

/** The first actual and the first expected line of a difference. */
function firstDifference(lines: readonly string[]): string {
  const first = (sign: string) => lines.find((line) => line.startsWith(`${sign} `));
  return [first('+'), first('-')].filter((line) => line !== undefined).join(' ');
}

function shortened(line: string, characters: number): string {
  return line.length > characters ? `${line.slice(0, characters).toWellFormed()}…` : line;
}

/**
 * The place of the line of an output that best says why it failed: the first that says what an error is, else
 * the first that names one, else the last that is not empty. -1 if there is none.
 */
export function findReasonLine(lines: readonly string[]): number {
  const read = lines.map((line) => line.slice(0, printedText.bytes.line));
  const said = read.findIndex(saysError);
  const named = said === -1 ? read.findIndex(namesError) : said;
  return named === -1 ? lines.findLastIndex((line) => line.trim() !== '') : named;
}

/**
 * How many lines an excerpt shows: lines that name failed tests, lines that name errors, and lines from the
 * reason on.
 */
const evidence = { tests: 8, errors: 8, lines: 4 };

/**
 * The places of the lines that say what failed, in order: those that name failed tests or errors, and the
 * line with the reason, with the lines after it.
 */
export function failureLines(lines: readonly string[]): number[] {
  const reasonAt = findReasonLine(lines);
  const from = reasonAt === -1 ? [] : Array.from({ length: evidence.lines }, (_, index) => reasonAt + index);
  const tests = failedTests(lines).map(({ at }) => at);
  const errors = lines.flatMap((line, at) => (namesError(line.slice(0, printedText.bytes.line)) ? [at] : []));
  const places = [...tests.slice(0, evidence.tests), ...errors.slice(0, evidence.errors), ...from];
  return [...new Set(places)].filter((at) => at < lines.length).sort((one, other) => one - other);
}

/** `: ` and why a program failed, by what it printed: the tests that failed, and the line with the reason. */
export function reasonSuffix(text = ''): string {
  const lines = text.split('\n');
  const line = messageAt(lines, findReasonLine(lines));
  const parts = [
    failedTestsText(
      failedTests(lines).map(({ name }) => name),
      line,
    ),
    shortened(line, shownCharacters),
  ];
  return parts
    .filter((part) => part !== '')
    .map((part) => `: ${part}`)
    .join('');
}

/** The first failed test, and how many more there are; empty if `line` names it. */
function failedTestsText([first, ...more]: readonly string[], line: string): string {
  if (first === undefined || line.includes(first)) return '';
  return `${shortened(first, shownCharacters)}${more.length > 0 ? ` and ${more.length} more` : ''}`;
}

/** Whether a judgment passes. Without a threshold it always does. Without a score it never reaches one. */
export function reachesThreshold({ score, threshold }: Judgment): boolean {
  return threshold === undefined || (score !== undefined && score >= threshold);
}

/** What a judgment gave, beside its threshold: `0.4 < 0.7`, `0.4`, `friendly`, `no score, needs 0.7`. */
export function scoreText(judgment: Judgment): string {
  const { choice, threshold } = judgment;
  const given = String(judgment.score ?? choice ?? 'no score');
  if (threshold === undefined) return given;
  if (judgment.score === undefined) return `${given}, needs ${threshold}`;
  return `${given} ${reachesThreshold(judgment) ? '≥' : '<'} ${threshold}`;
}

/** Whether a validation passed: its exit code, and the judgments that it asked for, which have its name. */
export function hasPassed(validation: Validation, judgments: readonly Judgment[] = []): boolean {
  return (validation.exitCode ?? 0) === 0 && lowJudgments(validation, judgments).length === 0;
}

/** Whether all that a validation found is a judgment of its name, which is shown by itself. */
export function isJudgment({ name, exitCode = 0, message }: Validation, judgments: readonly Judgment[] = []) {
  return exitCode === 0 && message === undefined && judgments.some((judgment) => judgment.name === name);
}

/** The status of a validation, or that it failed by a judgment of its name. */
export function standingOf(validation: Validation, judgments: readonly Judgment[] = []): string | undefined {
  const { status, exitCode } = validation;
  return exitCode === 0 && !hasPassed(validation, judgments) ? 'failed by its judgment' : status;
}

/** The judgments of a validation that do not reach their thresholds. */
export function lowJudgments({ name }: Pick<Validation, 'name'>, judgments: readonly Judgment[]): Judgment[] {
  return judgments.filter((judgment) => judgment.name === name && !reachesThreshold(judgment));
}

/**
 * How test runners print the name of a test that failed. The lines are what a program printed, perhaps an
 * agent's, so each pattern reads a line once, from its beginning.
 */
const patterns: readonly RegExp[] = [
  // pytest: FAILED test_a.py::test_b - assert 1 == 2
  /^(?:FAILED|ERROR) (?=\S*\.py)((?:(?! - ).)+)/,
  // Go: --- FAIL: TestSum (0.00s)
  /^\s*--- FAIL: (\S+)/,
  // Cargo: test tests::sums ... FAILED
  /^test (\S+) \.\.\. FAILED$/,
  // unittest: FAIL: test_sum (tests.TestSum)
  /^(?:FAIL|ERROR): (\S+ \([^()]+\))$/,
  // Vitest: FAIL  sum.test.ts > adds
  /^\s*FAIL\s+(\S+ > .+)$/,
  // Jest: ● sum › adds
  /^\s*● (\S.*)$/,
  // node --test: ✖ adds (1.2ms)
  /^\s*✖ (\S.*)$/,
  // TAP: not ok 3 - adds
  /^\s*not ok \d+ (?:- )?(\S.*)$/,
];

/** Each line that a pattern matches has one of these, so that most lines are read once. */
const marks = ['FAIL', 'ERROR', '●', '✖', 'not ok'];

/** Lines that look like a failed test, but are the heading of a list or a test that may fail. */
const others = /^failing tests:$|#\s*(?:todo|skip)\b/i;
const duration = / \([\d.]+ ?m?s\)$/;

/** A failed test, and the place of the line that first names it. */
interface FailedTest {
  name: string;
  at: number;
}

/** The tests that failed, in the order of the output, each once. Empty if the output names none. */
function failedTests(lines: readonly string[]): FailedTest[] {
  const read = lines
    .map((line, at) => ({ line: line.slice(0, printedText.bytes.line), at }))
    .filter(({ line }) => marks.some((mark) => line.includes(mark)))
    .map(({ line, at }) => ({ line: line.trimEnd(), at }));
  // A runner prints its tests in one form; another form is what a test printed itself.
  for (const pattern of patterns) {
    const tests = new Map<string, FailedTest>();
    for (const { line, at } of read) {
      const given = pattern.exec(line)?.[1];
      if (given === undefined || others.test(given)) continue;
      const name = given.replace(duration, '');
      if (!tests.has(name)) tests.set(name, { name, at });
    }
    if (tests.size > 0) return [...tests.values()];
  }
  return [];
}

/**
 * The last lines of what the failed verify steps and validations of a trial printed, and what made it void.
 * Empty for none.
 */
export function failedOutputOf({ verifySteps = [], validations = [], cause }: TrialRecord): string {
  const steps = verifySteps.filter(({ exitCode }) => exitCode !== 0).map(({ output }) => output);
  const failed = validations.filter(({ exitCode = 0 }) => exitCode !== 0).map(printedBy);
  return [...steps, ...failed, cause?.output ?? ''].map(lastLines).filter(Boolean).join('\n\n');
}

function printedBy({ message = '', kind, output, error, logs = [] }: Validation): string {
  const printed = kind === 'tests' ? logs.map(({ value }) => value?.text ?? '') : [];
  return [message.includes('\n') ? message : '', ...printed, output?.text ?? '', error?.text ?? '']
    .filter((text) => text.trim() !== '')
    .join('\n');
}

function lastLines(text: string): string {
  const lines = text.trimEnd().split('\n');
  return lines
    .slice(-printedText.count.lastLines)
    .join('\n')
    .slice(-printedText.bytes.logLine)
    .toWellFormed();
}
