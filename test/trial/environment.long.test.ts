import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CaseEnvironment, noEnvironment } from '../../src/suite/environment.ts';
import { freshVerify } from '../../src/suite/plan.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { testImage } from './test-image.ts';
import { openTrialBench, type TrialBench, validator } from './trial-bench.ts';

/** What images from elsewhere bring, and what must not matter: the last four lines. */
const foreign = `FROM offsite/base
RUN useradd --create-home --uid 1234 app && mkdir /app && echo brought > /app/brought.txt && chown -R app /app
RUN mkdir -p /opt/tools && printf '#!/bin/sh\\necho tool' > /opt/tools/tool && chmod +x /opt/tools/tool
RUN rm /usr/bin/git
ENV GREETING=hi PATH=/opt/tools:$PATH
WORKDIR /app
USER app
ENTRYPOINT ["/bin/false"]
CMD ["--no"]
HEALTHCHECK --interval=1s CMD false
ONBUILD RUN false
`;

let bench: TrialBench;
let image: string;
const opened = new AsyncDisposableStack();
beforeAll(async () => {
  bench = opened.use(await openTrialBench());
  image = opened.use(await testImage(bench.engine, foreign)).name;
});
afterAll(() => opened.disposeAsync(), 120_000);

function named(name: string, more: Partial<CaseEnvironment> = {}): CaseEnvironment {
  return { ...noEnvironment, image: { name, place: 'suite.yaml:7:5' }, ...more };
}

describe.concurrent('an image that a case names', () => {
  test('brings its working folder, files, user, home and variables, to every part of the trial', async () => {
    const facts = 'echo "$(id -un) $HOME $PWD $OFFSITE_WORKSPACE $GREETING $(tool) $(cat brought.txt)"';
    const result = await bench.trial(`${facts}; echo more >> brought.txt; touch new; rm gone`, {
      environment: named(image),
      prepare: `${facts} > prepared; touch gone`,
      verify: `${facts}\ncat prepared\ntest -e new\ntest ! -e gone`,
      protected: ['prepared'],
      artifacts: ['new'],
    });
    const line = 'app /home/app /app /app hi tool brought';
    expect(result.cause).toBeUndefined();
    expect(result.verdict).toBe('passed');
    expect(result.trajectory?.[0]?.output).toBe(`${line}\n`);
    expect(result.verifySteps?.map(({ output }) => output.split('\n')[0])).toEqual([line, line, '', '']);
    expect(result.filesChanged).toEqual(['brought.txt', 'gone', 'new']);
    const edited = result.changes?.find(({ path }) => path === 'brought.txt');
    const text = (sha256 = '') => bench.blobs.read(sha256).toString('utf8');
    expect([text(edited?.before?.content), text(edited?.after?.content)]).toEqual([
      'brought\n',
      'brought\nmore\n',
    ]);
    expect(result.artifacts?.map(({ path }) => path)).toEqual(['new', '.offsite/trajectory.jsonl']);
    expect(result.workspace).toBe('/app');
    expect(result.subject?.image).toBe(image);
  });

  test('has its workspace where the case says, with the case’s user and variables', async () => {
    const result = await bench.trial('pwd; id -u; echo "$GREETING $animal" > said; stat -c %U .', {
      environment: named(image, { workdir: '/srv/work', user: 'nobody', env: { GREETING: 'ho' } }),
      variables: { animal: 'cat' },
      verify: 'grep -x "ho cat" said\ntest "$GREETING" = ho',
      validator: validator(
        'export default async (v) => { v.equal("said", await v.read("said"), "ho cat\\n"); };',
      ),
      protected: ['other'],
    });
    expect(result.cause).toBeUndefined();
    expect(result.trajectory?.map(({ output }) => output)).toEqual(['/srv/work\n65534\nnobody\n']);
    expect(result.verdict).toBe('passed');
  });

  test('gets the case’s files before prepare, for its user, with their modes and links', async () => {
    const files = [
      { path: 'tools', folder: true as const, mode: 0o700 },
      { path: 'tools/run', content: Buffer.from('#!/bin/sh\necho ran'), mode: 0o755 },
      { path: 'tools/link', linkTarget: 'run' },
      { path: '/etc/placed', content: Buffer.from('outside'), mode: 0o640 },
    ];
    const trial = (content: string) =>
      bench.trial('./tools/run; cat /etc/placed seen; stat -c "%U %a %n" tools tools/run /etc/placed', {
        environment: named(image, {
          files: [...files, { path: 'brought.txt', content: Buffer.from(content), mode: 0o644 }],
        }),
        prepare: './tools/link > seen; cat brought.txt >> seen',
        verify: 'test -L tools/link\ntest -x tools/run',
      });
    const [first, second] = [await trial('first\n'), await trial('second\n')];
    const modes = 'app 700 tools\napp 755 tools/run\napp 640 /etc/placed\n';
    expect(first.cause).toBeUndefined();
    expect(first.trajectory?.[0]?.output).toBe(`ran\noutsideran\nfirst\n${modes}`);
    expect(second.trajectory?.[0]?.output).toBe(`ran\noutsideran\nsecond\n${modes}`);
    expect(first.filesChanged).toEqual([]);
    expect(first.verdict).toBe('passed');
  });

  test('is used once its healthcheck succeeds, for the harness and for grading', async () => {
    const healthcheck = { interval: 100, timeout: 5_000, startPeriod: 0, retries: 600 };
    const { verdict, cause, trajectory } = await bench.trial('cat /tmp/ready', {
      environment: named(image, { healthcheck: { command: 'grep -x "$word" /tmp/ready', ...healthcheck } }),
      variables: { word: 'healthy' },
      prepare: 'setsid -f bash -c "sleep 2; echo healthy > /tmp/ready; sleep 600" > /dev/null 2>&1',
      verify: 'grep -x healthy /tmp/ready',
    });
    expect(cause).toBeUndefined();
    expect(trajectory?.[0]?.output).toBe('healthy\n');
    expect(verdict).toBe('passed');
  });

  test('that never becomes healthy makes the trial void for the task, and leaves no container', async () => {
    const healthcheck = { interval: 100, timeout: 5_000, startPeriod: 0, retries: 2 };
    await using other = await openTrialBench();
    for (const prepare of [undefined, 'setsid -f sleep 600 > /dev/null 2>&1']) {
      const { verdict, cause } = await other.trial('true', {
        environment: named(image, {
          healthcheck: { command: 'echo no; echo why >&2; exit 7', ...healthcheck },
        }),
        prepare,
        verify: 'true',
      });
      expect(verdict).toBe('void');
      expect(cause).toEqual({
        kind: 'task',
        phase: 'sandbox',
        message: 'the healthcheck failed 2 times, and exited with 7 the last time',
        output: 'no\nwhy\n',
      });
    }
    const filters = { label: [`offsite.instance=${other.engine.instance}`, 'offsite.role=container'] };
    // What was to grade it goes in the background.
    const left = () => dockerOf(other.engine).listContainers({ all: true, filters });
    await expect.poll(left, { timeout: 10_000 }).toEqual([]);
  });

  test('may look for programs in the workspace: results say so, and the agent fakes no step and no validator', async () => {
    await using open = await testImage(
      bench.engine,
      'FROM offsite/base\nWORKDIR /app\nENV PATH=/app/bin:$PATH BASH_ENV=/app/env.sh NODE_OPTIONS="--require /app/x.cjs" APP=/app\n',
    );
    const fake = '#!/bin/sh\\necho faked > /app/faked; exit 0';
    const { verdict, verifySteps, validations, sandboxLacks } = await bench.trial(
      `mkdir bin; for name in bash node; do printf '${fake}' > bin/$name; chmod +x bin/$name; done
echo 'exit 0' > env.sh; echo 'process.exit(0)' > x.cjs`,
      {
        environment: named(open.name),
        prepare: 'echo > x.cjs',
        verify: 'test ! -e faked\nfalse',
        validator: validator(
          "import { validate } from 'offsite/validator'; validate('v', () => { throw new Error('seen'); });",
        ),
      },
    );
    expect(verdict).toBe('failed');
    expect(verifySteps?.map(({ exitCode }) => exitCode)).toEqual([0, 1]);
    expect(validations).toMatchObject([{ name: 'v', exitCode: 1 }]);
    expect(sandboxLacks).toEqual([
      expect.stringContaining(
        'PATH, BASH_ENV, NODE_OPTIONS of the environment names a folder in the workspace',
      ),
    ]);
  });

  test('is graded in the same sandbox too, where only changes outside of its workspace count', async () => {
    const result = await bench.trial('touch inside /tmp/outside', {
      environment: named(image),
      verify: 'test -e inside',
      verifyPlace: { ...freshVerify, in: 'same' },
    });
    expect(result.systemChanges?.unexpected.paths).toEqual([]);
    expect(result.systemChanges?.caches).toEqual({ paths: ['/tmp/outside'], count: 1 });
    expect(result.verdict).toBe('passed');
  });

  test('is prepared in each sandbox if it has volumes, which no snapshot keeps', async () => {
    await using volatile = await testImage(
      bench.engine,
      'FROM offsite/base\nRUN mkdir /data && echo old > /data/file\nVOLUME /data\nWORKDIR /data\n',
    );
    const result = await bench.trial('cat file new; echo changed > file', {
      environment: named(volatile.name),
      prepare: 'echo prepared > new',
      verify: 'grep -x changed file\ngrep -x prepared new',
    });
    expect(result.cause).toBeUndefined();
    expect(result.trajectory?.[0]?.output).toBe('old\nprepared\n');
    expect(result.filesChanged).toEqual(['file']);
    expect(result.verdict).toBe('passed');
  });

  test('gets the case’s limits, and a trial is void if the machine does not have them', async () => {
    const resources = { memory: 96 * 1024 ** 2, disk: 1024 ** 2 };
    const limits = await bench.trial(
      'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes',
      {
        environment: named(image, { resources }),
        verify: 'true',
      },
    );
    expect(limits.trajectory?.[0]?.output).toContain(String(resources.memory));
    const full = await bench.trial('head -c 100M /dev/zero > file; sleep 60', {
      environment: named(image, { resources }),
      verify: 'true',
    });
    expect(full.harness).toMatchObject({ ended: 'out-of-disk' });
    const { verdict, cause } = await bench.trial('true', {
      environment: named(image, { resources: { cpus: 5000 } }),
      verify: 'true',
    });
    expect(verdict).toBe('void');
    expect(cause).toMatchObject({ kind: 'task', message: expect.stringContaining('5000 processors') });
  });

  test('may be replaced by the configuration, and the result says so', async () => {
    const { verdict, subject, mappedImages } = await bench.trial('cat brought.txt', {
      environment: {
        ...noEnvironment,
        image: { name: 'ubuntu:24.04', mappedTo: image, place: 'suite.yaml:7:5' },
      },
      verify: 'true',
    });
    expect({ verdict, mappedImages }).toEqual({
      verdict: 'passed',
      mappedImages: [{ name: 'ubuntu:24.04', usedInstead: image }],
    });
    expect(subject?.image).toBe(image);
  });

  test('that the engine does not have makes the trial void for the task, with its place', async () => {
    const result = await bench.trial('true', { environment: named('nobody/has:this'), verify: 'true' });
    const { verdict, cause, phases } = result;
    expect(verdict).toBe('void');
    expect(cause).toEqual({
      kind: 'task',
      phase: 'sandbox',
      message:
        'suite.yaml:7:5: the engine has no image nobody/has:this. ' +
        'Pull it (docker pull nobody/has:this), or map it in `advanced.images` of offsite.yaml.',
    });
    expect(phases.map(({ name }) => name)).toEqual(['sandbox']);
  });

  test.each([
    ['without Node', 'RUN rm /usr/local/bin/node'],
    ['with a Node that is too old', 'RUN printf "#!/bin/sh\\nexit 1\\n" > /usr/local/bin/node'],
  ])('%s runs modules as validators with a Node that its work cannot change', async (_, change) => {
    await using bare = await testImage(bench.engine, `FROM offsite/base\n${change}\n`);
    const forge = 'for file in /offsite-node/bin/node /offsite-node/bin /offsite-node; do ';
    const result = await bench.trial(
      'command -v node; ls -d /offsite-node; echo "$forge" > work.sh; echo "echo done" >> work.sh',
      {
        environment: {
          ...named(bare.name),
          env: { forge: `${forge} rm -rf $file; echo x > $file; done 2>&1` },
        },
        validator: validator(`import { type ValidationContext, validate } from 'offsite/validator';
validate('the work', async ({ run }: ValidationContext) => {
  const { stdout } = await run('bash', ['work.sh']);
  if (stdout.trimEnd().split('\\n').at(-1) !== 'done') throw new Error(stdout);
  const { stdout: answer } = await run('/offsite-node/bin/node', ['-p', '6*7']);
  if (answer !== '42\\n') throw new Error(answer);
});`),
      },
    );
    expect(result.cause).toBeUndefined();
    expect(result.verdict).toBe('passed');
    expect(result.trajectory?.[0]?.output).toContain('/offsite-node');
    expect(result.trajectory?.[0]?.output).toContain('No such file');
    const installs = result.environment?.filter(({ phase }) => phase === 'install');
    expect(installs?.map(({ description }) => description)).toEqual(['install of Node for validators']);
    const program = validator('#!/bin/sh\necho "$OFFSITE_WORKSPACE"; exit 1\n');
    const { verdict, cause } = await bench.trial('true', {
      environment: named(bare.name),
      validator: program,
    });
    expect({ verdict, cause }).toEqual({ verdict: 'failed', cause: undefined });
  });

  test('in which no Node of ours starts says so for a module', async () => {
    const change = 'RUN rm /usr/local/bin/node /usr/lib/x86_64-linux-gnu/libstdc++.so.6*';
    await using bare = await testImage(bench.engine, `FROM offsite/base\n${change}\n`);
    const { cause } = await bench.trial('true', {
      environment: named(bare.name),
      validator: validator('export {};'),
    });
    expect(cause).toMatchObject({ kind: 'task', phase: 'sandbox' });
    expect(cause?.message).toContain(
      `suite.yaml:7:5: the Node of the validator does not run in the image ${bare.name}: it has no libstdc++`,
    );
  });

  const shell = 'COPY --from=base /lib64 /lib64\nCOPY --from=base /usr/bin/dash /bin/sh\n';
  test.each([
    ['no shell at all', '', 'has no /bin/sh'],
    ['no bash', shell, 'has no bash'],
    [
      'a PATH without bash',
      `${shell}COPY --from=base /bin /bin\nENV PATH=/nowhere\n`,
      'in its PATH (/nowhere)',
    ],
    [
      'a user that it does not have',
      `${shell}COPY --from=base /etc/passwd /etc/\nUSER ghost\n`,
      'no user ghost',
    ],
    ['a folder of the system to work in', 'WORKDIR /etc\n', '/etc cannot be the workspace'],
  ])('that has %s makes the trial void for the task, and says what to do', async (_, lines, message) => {
    // With a layer in common, the removal of one image would take it away from the build of the next.
    await using bare = await testImage(
      bench.engine,
      `FROM offsite/base AS base\nFROM scratch\nLABEL of="${message}"\nCOPY --from=base /etc/debian_version /\n${lines}`,
    );
    const { verdict, cause } = await bench.trial('true', { environment: named(bare.name), verify: 'true' });
    expect(verdict).toBe('void');
    expect(cause).toMatchObject({
      kind: 'task',
      phase: 'sandbox',
      message: expect.stringContaining(message),
    });
  });
});

test.concurrent.each(['ghost', 'nobody:ghosts', '99999999999', '-1', 'a:b:c'])(
  'a user that the usual image does not have makes the trial void for the task: %s',
  async (user) => {
    const { cause } = await bench.trial('true', { environment: { ...noEnvironment, user } });
    expect(cause).toMatchObject({ kind: 'task', message: expect.stringContaining(`has no user ${user}:`) });
  },
);
