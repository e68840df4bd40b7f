// The validator that the `checks` and `judge` of a case in a suite become. checks.json has them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { validate } from 'offsite/validator';

/** Characters of all files that a judge reads. */
const materialLimit = 300_000;
const shownLimit = 500;

const { checks, judges } = JSON.parse(readFileSync(new URL('checks.json', import.meta.url), 'utf8'));
for (const check of checks)
  validate(check.name, given(check), (context) => withoutStack(grade(check, context)));
for (const judge of judges) validate(judge.name, (context) => withoutStack(ask(judge, context)));

/** Whoever wrote the check in a suite has nothing of where this file threw. */
async function withoutStack(grading) {
  try {
    return await grading;
  } catch (error) {
    error.stack = undefined;
    throw error;
  }
}

function given({ timeout }) {
  // A program ends by its own limit, with a message of its own.
  return timeout === undefined ? {} : { timeout: timeout + 5_000 };
}

async function grade(raw, context) {
  const check = expanded(raw, context.variables);
  if (check.run !== undefined) return gradeRun(check, context);
  const path = check.file ?? check.json;
  if (check.absent) {
    assert.ok(!(await exists(path, context)), `there is ${path}`);
    return;
  }
  if (check.file !== undefined && !compares(check)) {
    assert.ok(await exists(path, context), `there is no ${path}`);
    return;
  }
  const text = await textOf(path, context);
  if (check.file !== undefined) {
    compare(text, check, path);
    return;
  }
  const found = at(parsed(text, path), check.at ?? '', path);
  if (check.equals !== undefined) assert.deepStrictEqual(found, check.equals);
  const { equals: _, ...others } = check;
  if (compares(others)) compare(typeof found === 'string' ? found : JSON.stringify(found), others, path);
}

async function gradeRun({ run, timeout, exitCode = 0, ...check }, context) {
  const ended = await context.run('bash', ['-c', run], timeout === undefined ? {} : { timeout });
  const output = `\nstdout: ${shown(ended.stdout)}\nstderr: ${shown(ended.stderr)}`;
  assert.ok(
    ended.exitCode === exitCode,
    `it ended with exit code ${ended.exitCode}, not ${exitCode}${output}`,
  );
  compare(ended.stdout, check, 'the output');
  return ended.stdout;
}

async function textOf(path, context) {
  try {
    return await context.read(path);
  } catch (error) {
    if (!(await exists(path, context))) assert.fail(`there is no ${path}`);
    throw error;
  }
}

async function exists(path, { files }) {
  const clean = path.replace(/^\.\//, '').replace(/\/$/, '');
  return (await files()).some((file) => file === clean || file.startsWith(`${clean}/`));
}

function compares({ equals, contains, matches }) {
  return equals !== undefined || contains !== undefined || matches !== undefined;
}

function compare(text, { equals, contains = [], matches }, what) {
  const has = `; it has: ${shown(text)}`;
  if (equals !== undefined) assert.equal(text.trim(), String(equals).trim());
  for (const part of [contains].flat())
    assert.ok(text.includes(part), `${what} does not contain ${JSON.stringify(part)}${has}`);
  if (matches !== undefined)
    assert.ok(new RegExp(matches, 'mu').test(text), `${what} does not match /${matches}/${has}`);
}

function shown(text) {
  if (text === '') return 'nothing';
  return text.length <= shownLimit ? text : `${text.slice(0, shownLimit)} [cut]`;
}

function parsed(text, path) {
  try {
    return JSON.parse(text);
  } catch (error) {
    return assert.fail(`${path} is no JSON: ${error.message}; it has: ${shown(text)}`);
  }
}

/** What a JSON Pointer (RFC 6901) names. */
function at(value, pointer, path) {
  let found = value;
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const has = typeof found === 'object' && found !== null && Object.hasOwn(found, key);
    assert.ok(has, `${path} has nothing at ${pointer}`);
    found = found[key];
  }
  return found;
}

async function ask({ rubric, files, threshold, model, votes }, context) {
  const { variables, finalMessage } = context;
  const paths = files === undefined ? context.filesChanged : await matching(files, context);
  const material = await texts(paths, context);
  if (files === undefined && finalMessage?.trim()) material['the last message'] = finalMessage;
  assert.ok(Object.keys(material).length > 0, nothingToJudge(files, paths, context));
  await context.judge({
    rubric: expanded(rubric, variables),
    material,
    threshold,
    ...(model !== undefined && { models: [model] }),
    ...(votes !== undefined && { votes }),
  });
}

/** Why a judge is not asked. It says which files there are, because a glob with a typo matches none. */
function nothingToJudge(files, paths, { filesChanged }) {
  const changed =
    filesChanged.length === 0 ? 'no file changed' : `changed: ${shown(filesChanged.join(', '))}`;
  if (files === undefined) return `there is no text to judge; ${changed}`;
  const globs = files.join(', ');
  if (paths.length > 0) return `there is no text to judge: what matches ${globs} has no text`;
  return `there is no text to judge: no file matches ${globs}, the files of the judge; ${changed}`;
}

async function matching(globs, { files, variables }) {
  const found = await Promise.all(
    globs.map((glob) => files(expanded(glob, variables).replace(/^(\.\/)+/, ''))),
  );
  return [...new Set(found.flat())];
}

/** The texts of files, as far as the limit allows. Files that are binary, gone or blank are left out. */
async function texts(paths, { read, log }) {
  const material = {};
  let left = materialLimit;
  for (const path of paths) {
    const text = await read(path).catch(() => undefined);
    if (text === undefined || text.trim() === '' || text.includes('\0')) continue;
    if (text.length > left) log(`not shown to the judge, because there is too much: ${path}`);
    else {
      material[path] = text;
      left -= text.length;
    }
  }
  return material;
}

/** Variables of the case in all texts of a value. */
function expanded(value, variables) {
  if (typeof value === 'string')
    return value.replace(/(\\)?\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}/g, (match, escaped, name) => {
      if (escaped) return match.slice(1);
      return Object.hasOwn(variables, name) ? variables[name] : match;
    });
  if (Array.isArray(value)) return value.map((one) => expanded(one, variables));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, expanded(one, variables)]));
}
