import { expect, test } from 'vitest';
import { plainDockerfile, remoteAdds, unmetNeeds } from '../../src/suite/dockerfile-features.ts';

const text = `FROM a AS first
SHELL ["/bin/bash", "-c"]
RUN --mount=type=cache,target=/c <<-EOF
\techo one
\tEOF
COPY --link --chmod=700 a /b
FROM first
RUN cat <<A <<B > /x
a
A
b
B
FROM b
COPY <<EOF /c
x
EOF
ADD --checksum=sha256:1 https://a.example/ /d
RUN cat << 'EOF'
`;

test('here-documents of RUN become commands on the same lines', () => {
  const { text: plain, notes } = plainDockerfile(text, 'older');
  const lines = plain.split('\n');
  expect(lines).toHaveLength(text.split('\n').length);
  expect(lines.slice(2, 6)).toEqual([
    'RUN --mount=type=cache,target=/c ["/bin/bash","-c","echo one"]',
    '#',
    '#',
    'COPY --chmod=700 a /b',
  ]);
  expect(lines[7]).toBe(`RUN ["/bin/bash","-c","cat <<A <<B > /x\\na\\nA\\nb\\nB"]`);
  expect(lines.slice(12)).toEqual(text.split('\n').slice(12));
  expect(notes).toEqual(['here-documents of RUN are passed to /bin/bash -c', 'COPY --link is done as COPY']);
  expect(plainDockerfile(text, 'current')).toEqual({ text, notes: [] });
});

test('what a builder has not is told with its line', () => {
  const newerThan = (frontend: 'classic' | 'older' | 'current') =>
    unmetNeeds(text, frontend).map(({ line, message }) => `${line} ${message.split(' needs ')[0]}`);
  const newer = ['14 a here-document of COPY', '17 ADD --checksum'];
  expect(newerThan('classic')).toEqual(['3 RUN --mount', '6 COPY --chmod', ...newer]);
  expect(newerThan('older')).toEqual(newer);
  expect(newerThan('current')).toEqual([]);
});

test.for([
  'ONBUILD ADD\vhttp://h/x /y',
  'ONBUILD ADD\fhttp://h/x /y',
  'ONBUILD \\\n  ADD http://h/x /y',
  'ADD <<EOF http://h/x /y\ntext\nEOF',
  'ADD git@h:a/b.git /y',
  'ARG SCHEME=http\nADD $SCHEME://h/x /y',
])('an ADD that fetches is found however it is written: %j', (line) => {
  expect(remoteAdds(`FROM a\n${line}`)).toHaveLength(1);
  expect(remoteAdds('FROM a\nADD files.tar.gz /y')).toEqual([]);
});
