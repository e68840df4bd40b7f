import {
  chmodSync,
  existsSync,
  mkdirSync,
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
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { KnownKeys } from '../../../src/redaction/redactor.ts';
import { fetchSources } from '../../../src/suite/git/fetch-sources.ts';
import { loadConfig } from '../../../src/suite/load-config.ts';
import { loadSuite } from '../../../src/suite/load-suite.ts';
import { anyHarness } from '../any-harness.ts';
import { makeRepository } from './repository.ts';
import { entriesOf, filesOf, suitePlaces } from './suite-sources.ts';

const { place, sourcesOf, problemOf, gitIn } = suitePlaces();
const { signal } = new AbortController();

describe('a source', () => {
  test('is the commit of a branch, a tag, an id or HEAD, and nothing of other commits comes with it', async () => {
    const repository = makeRepository(join(place.suiteFolder, 'repo'));
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

    const { path, git } = await gitIn(planned[2]);
    expect(git('status', '--porcelain', '--branch')).toBe('## main');
    expect(git('log', '--format=%H', '--all')).toBe(first);
    expect(git('remote')).toBe('');
    expect(git('fsck', '--connectivity-only')).toBe('');
    const objects = git('cat-file', '--batch-all-objects', '--batch-check=%(objectname)');
    expect(objects).not.toContain(second);
    const everything = readdirSync(path, { recursive: true, withFileTypes: true });
    for (const entry of everything.filter((each) => each.isFile()))
      expect(readFileSync(join(entry.parentPath, entry.name), 'latin1')).not.toContain(place.suiteFolder);
    expect(existsSync(join(path, '.git', 'FETCH_HEAD'))).toBe(false);
  });

  test('is fetched once, and stays when its repository is gone', async () => {
    const repository = makeRepository(join(place.suiteFolder, 'repo'));
    const commit = repository.commit({ a: '1' });
    const [one] = await sourcesOf([`{ git: repo, ref: ${commit} }`]);
    const kept = join(place.folder, 'data', 'sources');
    const before = readdirSync(kept);
    renameSync(join(repository.path, '.git', 'objects', 'pack'), join(place.folder, 'away'));
    // One that was used a moment ago stays, and one that nobody used for months goes.
    const old = new Date('2001-01-01');
    utimesSync(join(kept, before[0] ?? ''), old, old);
    const [two] = await sourcesOf([`{ git: repo, ref: ${commit} }`]);
    expect(two).toEqual(one);
    mkdirSync(join(kept, 'unused'));
    utimesSync(join(kept, 'unused'), old, old);
    makeRepository(join(place.suiteFolder, 'other')).commit({ a: '1' });
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
    const repository = makeRepository(join(place.suiteFolder, 'repo'));
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
    makeRepository(join(place.suiteFolder, 'repo')).commit({ a: '1' });
    const file = join(place.suiteFolder, 'suite.yaml');
    writeFileSync(
      file,
      'suite: { id: s, prompt: go }\nsource: { git: repo }\nvariants: [{ model: none, harness: any }]\n' +
        'cases:\n  - { id: a, verify: "true" }\n  - { id: b, verify: "true", source: { kind: empty } }\n',
    );
    const quiet = { note: () => undefined, onProgress: () => undefined };
    const dataFolder = join(place.folder, 'data');
    const sources = await fetchSources(file, { dataFolder, env: process.env, signal, ...quiet });
    // The suite is loaded as it was when its sources were fetched.
    writeFileSync(file, 'suite: changed');
    const config = loadConfig({ suiteFolder: place.suiteFolder, env: {} });
    const { cases } = loadSuite(file, config, [anyHarness], { sources });
    expect(cases.map(({ local }) => local.environment.source !== undefined)).toEqual([true, false]);
  });
});

describe('a source is refused, with its place', () => {
  test('if git cannot find or read it', async () => {
    const repository = makeRepository(join(place.suiteFolder, 'repo'));
    repository.commit({ a: '1' });
    mkdirSync(join(place.suiteFolder, 'plain'));
    const start = /^suite\.yaml:4:\d+: cases\[0\]\.source\.ref: /;
    const noRef = await problemOf('{ git: repo, ref: nope }');
    expect(noRef).toMatch(start);
    expect(noRef).toContain('the repository has no branch and no tag nope; a commit needs its whole id');
    expect(await problemOf('{ git: plain }')).toContain('plain is not a git repository');
    // Once, where git has it from both sides.
    expect(await problemOf(`{ git: repo, ref: "${'1'.repeat(40)}" }`)).toMatch(
      /source\.ref: the repository has no commit 1{40}: git said: [^/]*not our ref 1{40}$/,
    );
    makeRepository(join(place.suiteFolder, 'bare'));
    expect(await problemOf('{ git: bare }')).toContain('the repository has no commit at its HEAD');
  });

  test('if a shallow clone lacks it, with what to do', async () => {
    const repository = makeRepository(join(place.folder, 'whole'));
    const first = repository.commit({ a: '1' });
    repository.commit({ a: '2' });
    const clone = join(place.suiteFolder, 'clone');
    repository.git('clone', '--quiet', '--depth=1', `file://${repository.path}`, clone);
    const fetching = sourcesOf([`{ git: clone, ref: ${first} }`]);
    await expect(fetching).rejects.toThrow(/git said: .*clone: it is a shallow clone.*fetch-depth: 0/);
  });

  test('if there is no git', async () => {
    makeRepository(join(place.suiteFolder, 'repo')).commit({ a: '1' });
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
    mkdirSync(join(place.suiteFolder, 'gitfile'));
    writeFileSync(join(place.suiteFolder, 'gitfile', '.git'), 'gitdir: a\0b\n');
    expect(await problemOf('{ git: gitfile }')).toContain('cannot read');
  });

  test('if it is outside of the suite, or borrows from a repository that is', async () => {
    const outside = makeRepository(join(place.folder, 'private'));
    const commit = outside.commit({ secret: 'x' });
    const refused = /it is \S*private\S*, outside the suite's folder .*permit it with --allow-outside/;
    expect(await problemOf('{ git: ../private }')).toMatch(
      /cannot read \S*private: it is outside the suite's folder .*permit it with --allow-outside/,
    );
    const [allowed] = await sourcesOf(['{ git: ../private }'], { allowOutside: [outside.path] });
    expect(allowed?.commit).toBe(commit);

    mkdirSync(join(place.suiteFolder, 'gitfile'));
    writeFileSync(join(place.suiteFolder, 'gitfile', '.git'), `gitdir: ${outside.path}/.git\n`);
    expect(await problemOf('{ git: gitfile }')).toMatch(refused);
    // Nothing of such a folder is looked at: this one would take minutes.
    writeFileSync(join(place.suiteFolder, 'gitfile', '.git'), 'gitdir: /\n');
    expect(await problemOf('{ git: gitfile }')).toContain("it is /, outside the suite's folder");
    const borrowing = makeRepository(join(place.suiteFolder, 'borrowing'));
    writeFileSync(join(borrowing.path, '.git/objects/info/alternates'), '/\n');
    expect(await problemOf('{ git: borrowing }')).toContain("it is /, outside the suite's folder");
    writeFileSync(join(borrowing.path, '.git/objects/info/alternates'), `${outside.path}/.git/objects\n`);
    expect(await problemOf(`{ git: borrowing, ref: ${commit} }`)).toMatch(refused);
    const linked = makeRepository(join(place.suiteFolder, 'linked'));
    rmSync(join(linked.path, '.git/objects/pack'), { recursive: true });
    symlinkSync(join(outside.path, '.git/objects/pack'), join(linked.path, '.git/objects/pack'));
    expect(await problemOf('{ git: linked }')).toMatch(refused);
  });

  test('if a file of it holds a key of this machine', async () => {
    makeRepository(join(place.suiteFolder, 'repo')).commit({ 'a/env': 'x\nKEY=sk-known-to-this-machine\n' });
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
      const home = join(place.folder, 'home');
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
    const repository = makeRepository(join(place.suiteFolder, 'repo'));
    const trace = join(place.folder, 'ran');
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
    const repository = makeRepository(join(place.suiteFolder, 'repo'));
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
    expect(place.notes.join('\n')).toContain('submodules are not fetched: m');
    expect(place.notes.join('\n')).toContain('only their pointers: 1, such as big');
  });

  test('with a tree that git never writes is refused', async () => {
    const repository = makeRepository(join(place.suiteFolder, 'repo'));
    const blob = repository.commit({ a: '1' }) && repository.git('rev-parse', 'HEAD:a');
    const raw = Buffer.concat([Buffer.from('100644 ..\0'), Buffer.from(blob, 'hex')]);
    writeFileSync(join(place.folder, 'tree'), raw);
    const tree = repository.git('hash-object', '-t', 'tree', '-w', '--literally', join(place.folder, 'tree'));
    const commit = repository.git('commit-tree', '-m', 'x', tree);
    repository.git('update-ref', 'refs/heads/evil', commit);
    expect(await problemOf('{ git: repo, ref: evil }')).toMatch(/honest name|invalid path/);
  });
});

test('says that changes which are not committed are not in the workspace, except those of the suite itself', async () => {
  const { commit } = makeRepository(place.folder);
  commit({ 'a.txt': 'a', '.gitignore': 'data\n' });
  await sourcesOf(['{ git: .. }'], { allowOutside: [place.folder] });
  expect(place.notes.join('\n')).not.toContain('not committed');
  writeFileSync(join(place.folder, 'a.txt'), 'b');
  await sourcesOf(['{ git: .., ref: main }'], { allowOutside: [place.folder] });
  expect(place.notes.join('\n')).not.toContain('not committed');
  const [source] = await sourcesOf(['{ git: .. }'], { allowOutside: [place.folder] });
  expect(place.notes).toContain('HEAD of ..: changes that are not committed are not in the workspace');
  expect((await filesOf(source))['a.txt']).toBe('a');
});
