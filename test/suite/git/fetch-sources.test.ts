import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { KnownKeys } from '../../../src/redaction/redactor.ts';
import type { PlacedFile } from '../../../src/suite/environment.ts';
import { BadFile } from '../../../src/suite/file-issues.ts';
import { fetchSources, type SourceParts } from '../../../src/suite/git/fetch-sources.ts';
import type { PlannedSource } from '../../../src/suite/git/git-source.ts';
import { sourceEntries } from '../../../src/suite/git/source-entries.ts';
import { loadConfig } from '../../../src/suite/load-config.ts';
import { loadSuite } from '../../../src/suite/load-suite.ts';
import { makeRepository, type TestRepository } from './repository.ts';

let folder: string;
let suiteFolder: string;
let notes: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-git-'));
  suiteFolder = join(folder, 'suite');
  mkdirSync(suiteFolder);
  notes = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const { signal } = new AbortController();

/** The suite's planned sources, case by case. */
async function sourcesOf(sources: string[], parts: Partial<SourceParts> = {}) {
  const file = join(suiteFolder, 'suite.yaml');
  writeFileSync(join(suiteFolder, 'offsite.yaml'), 'profiles:\n  p: { run: "true" }\n');
  const cases = sources.map((source, index) => `  - { id: c${index}, source: ${source}, verify: "true" }`);
  const variants = 'variants: [{ model: none, harness: command, profile: p }]';
  writeFileSync(file, ['suite: { id: s, prompt: go }', variants, 'cases:', ...cases, ''].join('\n'));
  const fetched = await fetchSources(file, {
    dataFolder: join(folder, 'data'),
    env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', ...parts.env },
    signal,
    note: (message) => notes.push(message),
    onProgress: () => undefined,
    ...(parts.keys && { keys: parts.keys }),
    ...(parts.allowOutside && { allowOutside: parts.allowOutside }),
    ...(parts.credentialsFor && { credentialsFor: parts.credentialsFor }),
  });
  const config = loadConfig({ suiteFolder, env: {} });
  const harnesses = [
    { name: 'command', wires: [], runsScript: true, continues: false, mcp: [], limits: [] },
  ] as const;
  const plan = loadSuite(file, config, [...harnesses], { sources: fetched });
  return plan.cases.map(({ local }) => local.environment.source as PlannedSource);
}

/** All problems that a suite with this source is refused with. */
async function problemOf(source: string, parts?: Partial<SourceParts>): Promise<string> {
  try {
    await sourcesOf([source], parts);
  } catch (error) {
    if (error instanceof BadFile) return error.message.replaceAll(`${suiteFolder}/`, '');
    throw error;
  }
  throw new Error('the source was accepted');
}

async function entriesOf(source: PlannedSource | undefined): Promise<PlacedFile[]> {
  if (!source) throw new Error('no source');
  return Array.fromAsync(sourceEntries(source, { PATH: process.env.PATH }, signal));
}

async function filesOf(source: PlannedSource | undefined): Promise<Record<string, string>> {
  const files = (await entriesOf(source)).filter(({ path }) => !path.startsWith('.git'));
  return Object.fromEntries(
    files.map((file) => [
      file.path,
      'content' in file ? file.content.toString() : 'linkTarget' in file ? `-> ${file.linkTarget}` : 'folder',
    ]),
  );
}

describe('a source', () => {
  test('is the commit of a branch, a tag, an id or HEAD, and nothing of other commits comes with it', async () => {
    const repository = makeRepository(join(suiteFolder, 'repo'));
    const first = repository.commit({ 'a.txt': 'one\n' });
    repository.git('tag', '--annotate', '--message', 'first', 'v1');
    repository.git('branch', 'old/line');
    const second = repository.commit({ 'a.txt': 'SOLUTION\n', 'b/c.sh': '#!/bin/sh\n' });
    // A tag has a message of its own, which nobody asked for.
    await sourcesOf(['{ git: repo, ref: v1 }']);
    const refs = ['', ', ref: main', ', ref: v1', ', ref: refs/heads/old/line', `, ref: ${first}`];
    const planned = await sourcesOf(refs.map((ref) => `{ git: repo${ref} }`));
    expect(planned.map(({ commit }) => commit)).toEqual([second, second, first, first, first]);
    expect(await filesOf(planned[2])).toEqual({ 'a.txt': 'one\n' });
    expect(await filesOf(planned[0])).toEqual({
      'a.txt': 'SOLUTION\n',
      b: 'folder',
      'b/c.sh': '#!/bin/sh\n',
    });

    // As the sandbox gets it.
    const place = join(folder, 'workspace');
    for (const entry of await entriesOf(planned[2])) {
      if ('folder' in entry) mkdirSync(join(place, entry.path), { recursive: true });
      else if ('content' in entry) {
        mkdirSync(join(place, entry.path, '..'), { recursive: true });
        writeFileSync(join(place, entry.path), entry.content);
      }
    }
    const inside = makeRepository(join(folder, 'other'));
    const git = (...args: string[]) => inside.git('-C', place, ...args);
    expect(git('status', '--porcelain', '--branch')).toBe('## main');
    expect(git('log', '--format=%H', '--all')).toBe(first);
    expect(git('remote')).toBe('');
    expect(git('fsck', '--connectivity-only')).toBe('');
    const objects = git('cat-file', '--batch-all-objects', '--batch-check=%(objectname)');
    expect(objects).not.toContain(second);
    const everything = readdirSync(place, { recursive: true, withFileTypes: true });
    for (const entry of everything.filter((each) => each.isFile()))
      expect(readFileSync(join(entry.parentPath, entry.name), 'latin1')).not.toContain(suiteFolder);
    expect(existsSync(join(place, '.git', 'FETCH_HEAD'))).toBe(false);
  });

  test('is fetched once, and stays when its repository is gone', async () => {
    const repository = makeRepository(join(suiteFolder, 'repo'));
    const commit = repository.commit({ a: '1' });
    const [one] = await sourcesOf([`{ git: repo, ref: ${commit} }`]);
    const kept = join(folder, 'data', 'sources');
    const before = readdirSync(kept);
    renameSync(join(repository.path, '.git', 'objects', 'pack'), join(folder, 'away'));
    // One that was used a moment ago stays, and one that nobody used for months goes.
    const old = new Date('2001-01-01');
    utimesSync(join(kept, before[0] ?? ''), old, old);
    const [two] = await sourcesOf([`{ git: repo, ref: ${commit} }`]);
    expect(two).toEqual(one);
    mkdirSync(join(kept, 'unused'));
    utimesSync(join(kept, 'unused'), old, old);
    makeRepository(join(suiteFolder, 'other')).commit({ a: '1' });
    await sourcesOf(['{ git: other }']);
    expect(existsSync(join(kept, 'unused'))).toBe(false);
    expect(readdirSync(kept)).toHaveLength(2);
    rmSync(join(kept, readdirSync(kept).find((name) => !before.includes(name)) ?? 'none'), {
      recursive: true,
    });
    expect(readdirSync(kept)).toEqual(before);
    expect(before).toHaveLength(1);
  });

  test('may leave out .git, and keeps modes and links', async () => {
    const repository = makeRepository(join(suiteFolder, 'repo'));
    writeFileSync(join(repository.path, 'run'), '#!/bin/sh\n');
    chmodSync(join(repository.path, 'run'), 0o755);
    symlinkSync('/etc/passwd', join(repository.path, 'link'));
    repository.commit({});
    const [source] = await sourcesOf(['{ git: repo, history: none }']);
    expect(await entriesOf(source)).toEqual([
      { path: 'link', linkTarget: '/etc/passwd' },
      { path: 'run', content: Buffer.from('#!/bin/sh\n'), mode: 0o755 },
    ]);
  });

  test('of the suite holds for cases that have none of their own', async () => {
    makeRepository(join(suiteFolder, 'repo')).commit({ a: '1' });
    writeFileSync(
      join(suiteFolder, 'suite.yaml'),
      'suite: { id: s, prompt: go }\nsource: { git: repo }\nvariants: [{ model: m, harness: any }]\n' +
        'cases:\n  - { id: a, verify: "true" }\n  - { id: b, verify: "true", source: { kind: empty } }\n',
    );
    const parts = { dataFolder: join(folder, 'data'), env: process.env, signal, onProgress: () => undefined };
    const sources = await fetchSources(join(suiteFolder, 'suite.yaml'), { ...parts, note: () => undefined });
    const config = loadConfig({ suiteFolder, env: {} });
    const harnesses = [{ name: 'any', wires: [], continues: false, mcp: [], limits: [] as [] }];
    const { cases } = loadSuite(join(suiteFolder, 'suite.yaml'), config, harnesses, { sources });
    expect(cases.map(({ local }) => local.environment.source !== undefined)).toEqual([true, false]);
  });
});

describe('a source is refused, with its place', () => {
  test('if git cannot find or read it', async () => {
    const repository = makeRepository(join(suiteFolder, 'repo'));
    repository.commit({ a: '1' });
    mkdirSync(join(suiteFolder, 'plain'));
    const start = /^suite\.yaml:4:\d+: cases\[0\]\.source\.ref: /;
    const noRef = await problemOf('{ git: repo, ref: nope }');
    expect(noRef).toMatch(start);
    expect(noRef).toContain('the repository has no branch and no tag nope; a commit needs its whole id');
    expect(await problemOf('{ git: plain }')).toContain('plain is not a git repository');
    expect(await problemOf(`{ git: repo, ref: "${'0'.repeat(40)}" }`)).toMatch(
      /git said: .*(not our ref|0{40})/,
    );
    makeRepository(join(suiteFolder, 'bare'));
    expect(await problemOf('{ git: bare }')).toContain('the repository has no commit at its HEAD');
  });

  test('if a shallow clone lacks it, with what to do', async () => {
    const repository = makeRepository(join(folder, 'whole'));
    const first = repository.commit({ a: '1' });
    repository.commit({ a: '2' });
    const clone = join(suiteFolder, 'clone');
    repository.git('clone', '--quiet', '--depth=1', `file://${repository.path}`, clone);
    const fetching = sourcesOf([`{ git: clone, ref: ${first} }`]);
    await expect(fetching).rejects.toThrow(/git said: .*clone: it is a shallow clone.*fetch-depth: 0/);
  });

  test('if there is no git', async () => {
    makeRepository(join(suiteFolder, 'repo')).commit({ a: '1' });
    expect(await problemOf('{ git: repo }', { env: { PATH: '/nowhere' } })).toContain(
      'git is not on the PATH',
    );
  });

  test('if it, its ref or its protocol could be an option or a program', async () => {
    expect(await problemOf('{ git: "--upload-pack=touch x" }')).toContain('this begins with a dash');
    expect(await problemOf('{ git: repo, ref: "--upload-pack=x" }')).toContain('a tag or a whole commit id');
    expect(await problemOf('{ git: "ext::sh -c touch% x" }')).toContain('git helpers are not run');
    expect(await problemOf('{ git: "foo://host/x" }')).toContain('expected a URL of https');
  });

  test('if its address or its files name no path', async () => {
    expect(await problemOf('{ git: "file://elsewhere/x" }')).toContain('names no path of this machine');
    expect(await problemOf('{ git: "file:///a%00b" }')).toContain('cannot read /a');
    expect(await problemOf('{ git: "a\\0b" }')).toContain('has the character NUL');
    mkdirSync(join(suiteFolder, 'gitfile'));
    writeFileSync(join(suiteFolder, 'gitfile', '.git'), 'gitdir: a\0b\n');
    expect(await problemOf('{ git: gitfile }')).toContain('cannot read');
  });

  test('if it is outside of the suite, or borrows from a repository that is', async () => {
    const outside = makeRepository(join(folder, 'private'));
    const commit = outside.commit({ secret: 'x' });
    const refused = /it is \S*private\S*, outside the suite's folder .*permit it with --allow-outside/;
    expect(await problemOf('{ git: ../private }')).toMatch(
      /cannot read \S*private: it is outside the suite's folder .*permit it with --allow-outside/,
    );
    const [allowed] = await sourcesOf(['{ git: ../private }'], { allowOutside: [outside.path] });
    expect(allowed?.commit).toBe(commit);

    mkdirSync(join(suiteFolder, 'gitfile'));
    writeFileSync(join(suiteFolder, 'gitfile', '.git'), `gitdir: ${outside.path}/.git\n`);
    expect(await problemOf('{ git: gitfile }')).toMatch(refused);
    // Nothing of such a folder is looked at: this one would take minutes.
    writeFileSync(join(suiteFolder, 'gitfile', '.git'), 'gitdir: /\n');
    expect(await problemOf('{ git: gitfile }')).toContain("it is /, outside the suite's folder");
    const borrowing = makeRepository(join(suiteFolder, 'borrowing'));
    writeFileSync(join(borrowing.path, '.git/objects/info/alternates'), '/\n');
    expect(await problemOf('{ git: borrowing }')).toContain("it is /, outside the suite's folder");
    writeFileSync(join(borrowing.path, '.git/objects/info/alternates'), `${outside.path}/.git/objects\n`);
    expect(await problemOf(`{ git: borrowing, ref: ${commit} }`)).toMatch(refused);
    const linked = makeRepository(join(suiteFolder, 'linked'));
    rmSync(join(linked.path, '.git/objects/pack'), { recursive: true });
    symlinkSync(join(outside.path, '.git/objects/pack'), join(linked.path, '.git/objects/pack'));
    expect(await problemOf('{ git: linked }')).toMatch(refused);
  });

  test('if a file of it holds a key of this machine', async () => {
    makeRepository(join(suiteFolder, 'repo')).commit({ 'a/env': 'x\nKEY=sk-known-to-this-machine\n' });
    const keys = new KnownKeys([['API_KEY', 'sk-known-to-this-machine']]);
    const problem = await problemOf('{ git: repo }', { keys });
    expect(problem).toContain('a/env:2:5: holds the key in API_KEY');
    expect(problem).not.toContain('sk-known');
  });

  test('without its credentials in any message', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' });
      response.end('no');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const problem = await problemOf(`{ git: "http://somebody:pass%2Fw0rd@127.0.0.1:${port}/x" }`);
      expect(problem).toMatch(/git said: .*127\.0\.0\.1/);
      expect(problem).not.toContain('w0rd');
      expect(problem).not.toContain('somebody');
    } finally {
      server.close();
    }
  });
});

describe("the user's credentials", () => {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ headers }, response) => {
    asked.push(headers.authorization);
    response.writeHead(headers.authorization === undefined ? 401 : 403, {
      'www-authenticate': 'Basic realm="x"',
    });
    response.end();
  });
  let origin: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());
  beforeEach(() => {
    asked.length = 0;
  });

  /** Where git and curl find a login for the server: in a helper, in `.netrc`, and in a rewritten address. */
  const logins: Record<string, () => Record<string, string>> = {
    'a helper': () => ({ '.gitconfig': '[credential]\nhelper = "!echo username=a; echo password=b; :"\n' }),
    '.netrc': () => ({ '.netrc': 'machine 127.0.0.1 login a password b\n' }),
    'an address': () => ({ '.gitconfig': `[url "http://a:b@${origin}/"]\ninsteadOf = http://${origin}/\n` }),
  };
  test.each(Object.entries(logins))(
    'in %s are used only at hosts that the configuration names',
    async (_, files) => {
      const home = join(folder, 'home');
      mkdirSync(home);
      for (const [name, content] of Object.entries(files())) writeFileSync(join(home, name), content);
      const env = { HOME: home, GIT_CONFIG_GLOBAL: join(home, '.gitconfig') };
      const source = `{ git: "http://${origin}/private" }`;
      expect(await problemOf(source, { env })).toMatch(
        /asked without your credentials.*git\.credentials in offsite\.yaml/,
      );
      expect(asked).not.toEqual([]);
      expect(asked.filter((header) => header !== undefined)).toEqual([]);
      expect(await problemOf(source, { env, credentialsFor: [origin] })).not.toContain('git.credentials');
      expect(asked.at(-1)).toBe(`Basic ${Buffer.from('a:b').toString('base64')}`);
    },
  );

  test.each(['ssh://git@127.0.0.1:1/x', 'git@127.0.0.1:x'])(
    'of ssh are not used elsewhere: %s',
    async (git) => {
      expect(await problemOf(`{ git: "${git}" }`)).toContain('ssh uses your keys');
      expect(await problemOf(`{ git: "${git}" }`, { credentialsFor: ['127.0.0.1'] })).toContain('git said');
    },
  );
});

describe('a hostile repository', () => {
  test('runs nothing on this machine: no hook, no filter, no setting of it', async () => {
    const repository = makeRepository(join(suiteFolder, 'repo'));
    const trace = join(folder, 'ran');
    repository.commit({ '.gitattributes': '* filter=evil\n', a: '1\n', '.lfsconfig': '[lfs]\nurl = x\n' });
    for (const [key, value] of [
      ['filter.evil.smudge', `touch ${trace}`],
      ['filter.evil.clean', `touch ${trace}; cat`],
      ['core.fsmonitor', `touch ${trace}`],
      ['core.sshCommand', `touch ${trace}`],
      ['uploadpack.packObjectsHook', `touch ${trace};`],
      ['core.alternateRefsCommand', `touch ${trace}`],
      ['remote.evil.url', `ext::touch ${trace}`],
      ['remote.evil.promisor', 'true'],
    ])
      repository.git('config', key ?? '', value ?? '');
    for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change', 'pre-auto-gc']) {
      mkdirSync(join(repository.path, '.git/hooks'), { recursive: true });
      writeFileSync(join(repository.path, '.git/hooks', hook), `#!/bin/sh\ntouch ${trace}\n`, {
        mode: 0o755,
      });
    }
    const [source] = await sourcesOf(['{ git: repo }']);
    expect(await filesOf(source)).toMatchObject({ a: '1\n' });
    expect(existsSync(trace)).toBe(false);
  });

  test('has submodules and files of Git LFS told, and fetches neither', async () => {
    const repository = makeRepository(join(suiteFolder, 'repo'));
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n';
    const url = 'ext::sh -c touch% /tmp/offsite-never';
    const commit = repository.commit({
      '.gitmodules': `[submodule "m"]\npath = m\nurl = ${url}\n`,
      big: pointer,
    });
    repository.git('update-index', '--add', '--cacheinfo', `160000,${commit},m`);
    repository.git('commit', '--quiet', '--message', 'module');
    const [source] = await sourcesOf(['{ git: repo }']);
    expect(await filesOf(source)).toMatchObject({ m: 'folder', big: pointer });
    expect(notes.join('\n')).toContain('submodules are not fetched: m');
    expect(notes.join('\n')).toContain('only their pointers: 1, such as big');
  });

  test('with a tree that git never writes is refused', async () => {
    const repository = makeRepository(join(suiteFolder, 'repo'));
    const blob = repository.commit({ a: '1' }) && repository.git('rev-parse', 'HEAD:a');
    const raw = Buffer.concat([Buffer.from('100644 ..\0'), Buffer.from(blob, 'hex')]);
    writeFileSync(join(folder, 'tree'), raw);
    const tree = repository.git('hash-object', '-t', 'tree', '-w', '--literally', join(folder, 'tree'));
    const commit = repository.git('commit-tree', '-m', 'x', tree);
    repository.git('update-ref', 'refs/heads/evil', commit);
    expect(await problemOf('{ git: repo, ref: evil }')).toMatch(/honest name|invalid path/);
  });
});

describe("the suite's own files are left out of its repository", () => {
  const names = ['app.js', 'docs/answers/a.md', 'docs/guide.md'];
  const files = Object.fromEntries(names.map((name) => [name, `of ${name}\n`]));

  /** Writes a suite into a repository, and returns the sources of its cases. */
  async function sourcesIn(path: string, cases: string[], parts: Partial<SourceParts> = {}) {
    const file = join(path, 'suite.yaml');
    mkdirSync(path, { recursive: true });
    writeFileSync(
      file,
      [
        'suite: { id: s, prompt: go }',
        'variants: [{ model: n, harness: command }]',
        'cases:',
        ...cases,
        '',
      ].join('\n'),
    );
    const fetched = await fetchSources(file, {
      dataFolder: join(folder, 'data'),
      env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
      signal,
      note: (message) => notes.push(message),
      onProgress: () => undefined,
      allowOutside: [folder],
      ...parts,
    });
    return [...fetched.values()];
  }

  const planned = (source: Awaited<ReturnType<typeof sourcesIn>>[number] | undefined): PlannedSource => {
    if (!source || 'problem' in source) throw new Error(source?.problem ?? 'no source');
    return source;
  };

  /** Writes what the sandbox gets, and returns git there. */
  async function gitIn(source: PlannedSource) {
    const place = mkdtempSync(join(folder, 'workspace-'));
    for (const entry of await entriesOf(source)) {
      if ('folder' in entry) mkdirSync(join(place, entry.path), { recursive: true });
      else if ('content' in entry) {
        mkdirSync(join(place, entry.path, '..'), { recursive: true });
        writeFileSync(join(place, entry.path), entry.content);
      }
    }
    return (...args: string[]) => makeRepository(join(folder, 'other')).git('-C', place, ...args);
  }

  let repository: TestRepository;
  beforeEach(() => {
    repository = makeRepository(join(folder, 'repo'));
  });

  test('with their folder, from its commit too, and a commit without them has an id of its own', async () => {
    const original = repository.commit({
      ...files,
      'evals/suite.yaml': 'old\n',
      'evals/solve.sh': 'THE ANSWER\n',
      'evals/cases/other.patch': 'another\n',
    });
    const [found] = await sourcesIn(join(repository.path, 'evals'), [
      '  - { id: a, source: { git: .. }, verify: "true", solution: { file: solve.sh } }',
    ]);
    const source = planned(found);
    expect(notes).toEqual(['HEAD of ..: left out of the workspace: evals (3 files)']);
    expect(source.commit).toBe(original);
    expect(source.rebuilt).toMatch(/^[0-9a-f]{40}$/);
    expect(Object.keys(await filesOf(source))).toEqual(['app.js', 'docs', 'docs/answers', ...names.slice(1)]);

    const git = await gitIn(source);
    expect(git('log', '--all', '--format=%H %an %s')).toBe(`${source.rebuilt} a a commit`);
    expect(git('status', '--porcelain', '--branch')).toBe('## main');
    expect(git('fsck', '--strict')).toBe('');
    const answer = repository.git('rev-parse', 'HEAD:evals/solve.sh');
    const objects = git('cat-file', '--batch-all-objects', '--batch-check=%(objectname)');
    expect(objects).not.toContain(answer);
    expect(objects).not.toContain(original);

    const [again] = await sourcesIn(join(repository.path, 'evals'), [
      '  - { id: a, source: { git: .. }, verify: "true" }',
    ]);
    expect(again).toEqual(source);
  });

  test('also where the source is another copy of the repository, or only files', async () => {
    repository.commit({ ...files, 'evals/suite.yaml': 'old\n', 'evals/solve.sh': 'THE ANSWER\n' });
    repository.git('clone', '--quiet', '--bare', '.', join(folder, 'copy.git'));
    const [found] = await sourcesIn(join(repository.path, 'evals'), [
      '  - { id: a, source: { git: ../../copy.git, history: none }, verify: "true" }',
    ]);
    expect(Object.keys(await filesOf(planned(found)))).not.toContain('evals');
  });

  test('one by one where the suite is at the top, except for what a case puts into the workspace', async () => {
    const own = ['solve.sh', 'grade/v.js', 'grade/expected.txt', 'checks/t.sh', 'prompt.md'];
    repository.commit({
      ...files,
      ...Object.fromEntries([...own, 'suite.yaml', 'data.csv'].map((name) => [name, `of ${name}\n`])),
    });
    const [found] = await sourcesIn(repository.path, [
      '  - id: a',
      '    source: { git: . }',
      '    environment: { files: { data.csv: data.csv } }',
      '    validator: { file: grade/v.js, sourceFiles: [grade/expected.txt] }',
      '    solution: { command: [sh, /solution/solve.sh], files: { /solution/solve.sh: solve.sh } }',
      '  - id: b',
      '    tests: { folders: { /tests: checks }, command: [sh, /tests/t.sh], prints: pytest }',
    ]);
    const kept = Object.keys(await filesOf(planned(found))).filter((path) => path.includes('.'));
    expect(kept).toEqual(['app.js', 'data.csv', ...names.slice(1), 'prompt.md']);
  });

  test('with what leaveOut names, which must be there', async () => {
    repository.commit(files);
    const [found, missing] = await sourcesIn(suiteFolder, [
      '  - { id: a, source: { git: ../repo, leaveOut: ["docs/**/a.md", "*.js"] }, verify: "true" }',
      '  - { id: b, source: { git: ../repo, leaveOut: [doc] }, verify: "true" }',
    ]);
    expect(Object.keys(await filesOf(planned(found)))).toEqual(['docs', 'docs/guide.md']);
    expect(notes).toEqual(['HEAD of ../repo: left out of the workspace: docs/**/a.md, *.js (2 files)']);
    expect(missing).toEqual({
      problem: expect.stringMatching(/^"doc" matches no file of commit [0-9a-f]{40}$/),
      key: 'leaveOut',
    });
  });
});

test('says that changes which are not committed are not in the workspace, except those of the suite itself', async () => {
  const { commit } = makeRepository(folder);
  commit({ 'a.txt': 'a', '.gitignore': 'data\n' });
  await sourcesOf(['{ git: .. }'], { allowOutside: [folder] });
  expect(notes.join('\n')).not.toContain('not committed');
  writeFileSync(join(folder, 'a.txt'), 'b');
  await sourcesOf(['{ git: .., ref: main }'], { allowOutside: [folder] });
  expect(notes.join('\n')).not.toContain('not committed');
  const [source] = await sourcesOf(['{ git: .. }'], { allowOutside: [folder] });
  expect(notes).toContain('HEAD of ..: changes that are not committed are not in the workspace');
  expect((await filesOf(source))['a.txt']).toBe('a');
});
