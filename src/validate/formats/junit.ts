import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { messageOf } from '../../base/offsite-error.ts';
import { cut } from '../../text/printable.ts';

/** An element may occur once or several times. Attributes are strings. */
export type Element = { [name: string]: Element[] | string | undefined };

const lists = new Set(['testsuites', 'testsuite', 'testcase', 'failure', 'error', 'skipped']);

/**
 * Reads JUnit XML as common programs write it: `testcase` elements in suites, with `failure`, `error` or
 * `skipped` inside.
 */
export function readJunit(text: string): TestReport {
  const read = junitElements(text);
  return 'problem' in read ? { format: 'junit', ...read } : { format: 'junit', tests: read.map(testOf) };
}

/** Characters of a problem that are kept: the parser repeats in it what it read. */
const shown = 200;

/** The `testcase` elements of a report, or why it cannot be read. */
export function junitElements(text: string): Element[] | { problem: string } {
  const valid = XMLValidator.validate(text);
  if (valid !== true) return { problem: `line ${valid.err.line}: ${cut(valid.err.msg, shown)}` };
  const parser = new XMLParser({
    ignoreAttributes: false,
    attributeNamePrefix: '@',
    parseTagValue: false,
    parseAttributeValue: false,
    // The report may contain output of the graded program, so only XML's own entities are processed.
    processEntities: true,
    alwaysCreateTextNode: true,
    isArray: (name) => lists.has(name),
  });
  const tests: Element[] = [];
  try {
    collect(parser.parse(text) as Element, tests);
  } catch (error) {
    // The parser throws plain errors, for example for a document that refers to files.
    return { problem: cut(messageOf(error), shown) };
  }
  return tests;
}

function collect(element: Element, tests: Element[]): void {
  for (const name of ['testsuites', 'testsuite'] as const) {
    for (const inner of children(element, name)) collect(inner, tests);
  }
  for (const test of children(element, 'testcase')) tests.push(test);
}

function testOf(test: Element): ReportedTest {
  const { problem, skipped } = outcomeOf(test);
  const message = problem
    ? (text(problem['@message']) ?? text(problem['#text'])?.split('\n', 1)[0] ?? 'failed')
    : skipped && `skipped: ${text(skipped['@message']) ?? ''}`;
  const detail = problem && text(problem['#text']);
  const seconds = Number(text(test['@time']));
  return {
    name: [text(test['@classname']), text(test['@name'])].filter((part) => part).join(' > ') || 'test',
    passed: problem === undefined,
    ...(message !== undefined && { message }),
    ...(Number.isFinite(seconds) && seconds >= 0 && { durationMs: Math.round(seconds * 1000) }),
    ...(detail && { detail }),
  };
}

/** What a test has if it did not simply pass. */
export function outcomeOf(test: Element): { problem: Element | undefined; skipped: Element | undefined } {
  const [problem] = [...children(test, 'failure'), ...children(test, 'error')];
  const [skipped] = children(test, 'skipped');
  return { problem, skipped };
}

function children(element: Element, name: string): Element[] {
  const found = element[name];
  return Array.isArray(found) ? found.filter((child) => typeof child === 'object') : [];
}

function text(value: Element[] | string | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** One test in a report that a program printed. */
export interface ReportedTest {
  name: string;
  /** A skipped test counts as passed, as its report intends. The message says that it was skipped. */
  passed: boolean;
  message?: string;
  durationMs?: number;
  /** Further text of the report about this test. */
  detail?: string;
}

/**
 * A test report that a program printed: TAP, JUnit XML or CTRF JSON. The beginning of the output decides
 * which.
 */
export type TestReport =
  | { format: 'tap' | 'junit' | 'ctrf'; tests: ReportedTest[] }
  /** The output begins like a report but cannot be read as one. */
  | { format: 'tap' | 'junit' | 'ctrf'; problem: string };
