import { describe, expect, test } from 'vitest';
import { dockerfileProblems, imageSettings, rewritten, usedImages } from '../../src/suite/dockerfile.ts';

const file = `# syntax=docker/dockerfile:1
# escape=\\
ARG BASE=ubuntu:\${TAG:-24.04}
ARG NONE
FROM --platform=linux/amd64 $BASE AS Build
RUN --mount=type=bind,from=alpine,target=/x \\
  echo hi
COPY --chown=1:1 --from=busybox:1 /a /b
RUN ["a"]
RUN <<END
FROM not/an/instruction
END
FROM build
COPY --from=0 /a /b
COPY --from=build /a /b
FROM scratch
`;

const plain = { args: {}, imageFor: (name: string) => name, hasFrontend: () => true };

describe('a Dockerfile', () => {
  test('tells the images that it uses, with the values of its arguments', () => {
    const others = [
      { name: 'alpine', line: 6 },
      { name: 'busybox:1', line: 8 },
    ];
    expect(usedImages(file, {})).toEqual([{ name: 'ubuntu:24.04', line: 5 }, ...others]);
    expect(usedImages(file, { BASE: 'debian' })).toEqual([{ name: 'debian', line: 5 }, ...others]);
    const operators = `ARG A=a\nARG B\nFROM \${A:-x}/\${B:-y}\${A:+z}\${B:+no}:$A`;
    expect(usedImages(operators, {})).toEqual([{ name: 'a/yz:a', line: 3 }]);
  });

  test.each([
    ['FROM a\nENTRYPOINT ["/start.sh"]', undefined, 2],
    ['FROM a\nENTRYPOINT exec /start.sh', undefined, 2],
    ['FROM a\nENTRYPOINT ["/a"]\nENTRYPOINT ["/b"]', undefined, 3],
    ['FROM a\nENTRYPOINT ["/a"]\nENTRYPOINT []', undefined, undefined],
    ['FROM a\nENTRYPOINT ["/usr/bin/tini", "-g", "--"]', undefined, undefined],
    ['FROM a\nENTRYPOINT ["/usr/bin/tini", "--", "/start.sh"]', undefined, 2],
    ['FROM a AS x\nENTRYPOINT ["/a"]\nFROM b', undefined, undefined],
    ['FROM a AS x\nENTRYPOINT ["/a"]\nFROM X', undefined, 2],
    ['FROM a AS x\nENTRYPOINT ["/a"]\nFROM b', 'X', 2],
    ['FROM a\nENTRYPOINT ["/a"]\nFROM b', '0', 2],
    ['FROM a\nCMD ["/a"]', undefined, undefined],
  ])('tells the line of its entrypoint: %j for %s', (text, target, line) => {
    expect(imageSettings(text, target).entrypointLine).toBe(line);
  });

  test.each([
    ['FROM a\nWORKDIR /app', '/app', 2],
    ['FROM a\nWORKDIR /app\nWORKDIR src', '/app/src', 3],
    ['FROM a AS x\nWORKDIR /app\nFROM x\nWORKDIR ..', '/', 4],
    ['FROM a\nWORKDIR src', undefined, undefined],
    ['FROM a\nWORKDIR $HOME', undefined, undefined],
    ['FROM a\nWORKDIR /app\nFROM b', undefined, undefined],
  ])('tells its working folder: %j', (text, path, line) => {
    expect(imageSettings(text, undefined).workdir).toEqual(path && { path, line });
  });

  test('stays as it is if nothing is to be changed', () => {
    expect(rewritten(file, plain)).toMatchObject({ text: file, removedFrontends: [] });
  });

  test('names other images in the same lines', () => {
    const { text } = rewritten(file, { ...plain, imageFor: (name) => `my/${name}` });
    const changed = text.split('\n').filter((line, at) => line !== file.split('\n')[at]);
    expect(changed).toEqual([
      'FROM --platform=linux/amd64 my/ubuntu:24.04 AS Build',
      'RUN --mount=type=bind,from=my/alpine,target=/x \\',
      'COPY --chown=1:1 --from=my/busybox:1 /a /b',
    ]);
  });

  test('loses a syntax line whose frontend the engine does not have, and keeps what follows it', () => {
    const { text, removedFrontends } = rewritten(file, { ...plain, hasFrontend: () => false });
    expect(removedFrontends).toEqual(['docker/dockerfile:1']);
    expect(text.split('\n').slice(0, 3)).toEqual(['# escape=\\', '#', `ARG BASE=ubuntu:\${TAG:-24.04}`]);
    const alone = rewritten('#syntax = x\nFROM a\n', { ...plain, hasFrontend: () => false });
    expect(alone.text).toBe('#\nFROM a\n');
    const shell = rewritten('#!/bin/sh\n# syntax=x\nFROM a\n', { ...plain, hasFrontend: () => false });
    expect(shell.text).toBe('# /bin/sh\n# syntax=x\nFROM a\n');
  });

  test('gives every RUN a secret, and tells the author’s lines', () => {
    const { text, lineOf } = rewritten(file, { ...plain, secret: { id: 's', variables: ['A', 'B'] } });
    const lines = text.split('\n');
    const mount = '--mount=type=secret,id=s,mode=0444';
    expect(lines.filter((line) => line.startsWith('RUN'))).toEqual([
      `RUN ${mount} --mount=type=bind,from=alpine,target=/x \\`,
      `RUN ${mount} ["a"]`,
      `RUN ${mount} <<END`,
    ]);
    expect(lines.filter((line) => line === 'ARG A=/run/secrets/s B=/run/secrets/s')).toHaveLength(3);
    for (const [at, line] of lines.entries()) {
      if (line.startsWith('ARG A=')) continue;
      expect(line.replace(` ${mount}`, '')).toBe(file.split('\n')[lineOf(at + 1) - 1]);
    }
  });

  test.each([
    [
      'FRM x\nFROM y\nRUNN z\n',
      undefined,
      [
        { line: 1, message: 'unknown instruction: FRM' },
        { line: 3, message: 'unknown instruction: RUNN' },
      ],
    ],
    ['# nothing\n', undefined, [{ line: 1, message: 'it has no FROM' }]],
    ['FROM a AS one\nFROM b', 'two', [{ line: 1, message: 'it has no stage two: its stages are one' }]],
    ['FROM a', 'two', [{ line: 1, message: 'it has no stage two: no stage has a name' }]],
    ['FROM a AS One\nFROM b', 'one', []],
    ['FROM a AS One\nFROM b', '1', []],
    ['FROM a AS One\nFROM b', '2', [{ line: 1, message: 'it has no stage 2: its stages are one' }]],
  ])('%j has these problems for the target %s', (text, target, problems) => {
    expect(dockerfileProblems(text, target)).toEqual(problems);
  });
});
