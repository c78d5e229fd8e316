"""Texts without a secret, which must pass untouched. Written for this test."""

from __future__ import annotations

ORDINARY = """
Call me on +1 (415) 555-0132 after lunch
My number is 415-555-0132
Tel. 030 1234 5678, ext. 12
Mobile: +49 170 1234567
+44 20 7946 0958 is the office
Fax 0201-555-987
The order number is 4000123412341235
Order 112-3456789-1234567 shipped today
Invoice 2024-000123 is due on 2024-05-03
Tracking 1Z 999 AA1 01 2345 6784
ISBN 978-3-16-148410-0
EAN 4006381333931
IMEI 490154203237518
It happened on 2026-04-30T12:00:00Z
From 2024-01-01 to 2024-12-31
Timestamp 1714478400000
1714478400000000000 nanoseconds since 1970
Build 20260430120000 failed
Tweet 1785000000000000001 was deleted
Fixed in 356a192b7913b04c54574d18c28d46e6395428ab
commit da4b9237bacccdf19c0760cab7aec4a8359010b0
See 77de68d and 1b64538
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
md5 d41d8cd98f00b204e9800998ecf8427e
Request 123e4567-e89b-12d3-a456-426614174000 timed out
The ULID is 01ARZ3NDEKTSV4RRFFQ69G5FAV
Object 507f1f77bcf86cd799439011 is missing
It costs $1,299.99 or 1.299,99 €
Version 3.11.7 and v2.0.0-rc.1
Python 3.12, Node 20.11.1, PostgreSQL 16.2
The host is 192.168.0.12 and ::1
MAC 00:1B:44:11:3A:B7
Coordinates 52.520008, 13.404954
Pi is 3.14159265358979323846
4.1111111111111111 is a float
Colours #ff8800, #FFF and rgb(12, 34, 56)
https://example.org/path?x=1&y=2#part
https://example.org:8080/a@b
http://localhost:3000/users/ann@example.org
See git@github.com:ann/tools.git
ssh://git@example.org:22/ann/tools.git
postgres://localhost:5432/app
postgres://ann@localhost/app
postgres://${USER}:${PASSWORD}@localhost/app
https://user:{password}@example.org
redis://:****@cache:6379/0
Write to ann@example.org
The password must be at least 8 characters long
The password is stored in the vault
The password: see the vault
Password: changed last week
I forgot my password again
Reset your password at https://example.org/reset
Password reset: ann99@example.org
password: 8-character minimum
Password is case-sensitive
The password is v1.2.3 of the policy
Passwords: 12,345 leaked
passwords: 1000000
What is the password?
She asked for the password; he said no
password = input("Password: ")
password = getpass.getpass()
password = os.environ["DB_PASSWORD"]
password = config.database.password
password = request.form["password1"]
password=$DB_PASSWORD
password: ${DB_PASSWORD}
password: {{ vault.db_password }}
password = "<your password>"
password = "your-password-here"
password = "********"
password = "xxxxxxxxxxxx"
password: str
password: Optional[str] = None
password: string;
def login(user, password): ...
if password == confirm_password:
password_hash = bcrypt.hash(password)
password_length: 12characters
PASSWORD_MIN_LENGTH=12
"password": "required"
"password": "optional"
{"type": "password", "name": "password"}
<input type="password" name="user_password" autocomplete="current-password">
password_field = "user_password"
passwordFile: /run/secrets/db1
token = get_token()
token = tokens[0]
token: str | None = None
tokens.append(_Token("whitespace", sql[start:end]))
yield Token("identifier", 3)
https://user:[secure]@example.org
token = next(tokens)
max_tokens=2048
max_tokens: 4096
tokens: 12345678
token_count = 123456
next_token = token_2
The token budget is 2,500
The token: it expired
Token type: bearer
Bearer of bad news
the bearer authentication scheme
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
tokenizer=bert-base-uncased-v2
tokenizer: all-MiniLM-L6-v2
secretary: Anna12345
The secret is to listen
Secret: be patient
The secret to good bread: time
secret = load_secret("db")
secretName: my-tls-secret-1
secret_id = "abc12345678"
api_key = os.getenv("API_KEY")
api_key: process.env.API_KEY_2
api_key=YOUR_API_KEY
api_key: "your-api-key-here"
api_key = settings.api_key
API key: ask Ben
The api key is rotated every 90 days
apiKeyName: "x-api-key-1"
private_key: /etc/ssl/private/key1.pem
private_key_path = "~/.ssh/id_ed25519"
client_key: ./certs/client2.key
The key: practise every day
key: value
Key: Enter
primary key: user_id
cache key: user:1234:profile
keyboard: ThinkPad X1
monkey: 12345678
The public key is ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
The file starts with BEGIN and ends with END
aws s3 cp file.txt s3://bucket/key
The AWS key policy allows 40 requests
AKIA is the prefix of AWS access keys
arn:aws:iam::123456789012:role/deploy
AWS region us-east-1, account 123456789012
ghp is the prefix of GitHub tokens
npm_config_registry=https://registry.npmjs.org
npm install left-pad@1.3.0
<Item key="sidebarNavigationItemForMobile2Viewers" />
key="d41d8cd98f00b204e9800998ecf8427e0000"
key = "user.profile.settings.notifications.email.2"
pypi-server listens on 8080
sk-learn and sk-image are fine
pk_live is the publishable one
risk_live_data_in_production_2024
SG.1 is a hotel in Singapore
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA
eyJ is how base64 of JSON begins
eyJhbGciOiJub25lIn0 alone is no token
APARTMENTS and APPLICATIONS
APBEARINGSANDBUSHINGS
ACCOUNTING and SKATEBOARDING
IBAN DE89 3704 0044 0532 0130 00
VAT DE123456789
Area 000-12-3456 is not one
666-12-3456 is not one
900-12-3456 is not one
123-00-4567 is not one
123-45-0000 is not one
Room 123-45-67
Scores 123 45 6789 today
Part no. 12-345-6789
4111 1111 1111 1112 has a wrong sum
1234 5678 9012 3456
0000 0000 0000 0000
5105 1051 0510 5101
Meter 1111222233334444
User id 110201543: Ann
Meet at 10:30 in room 12345678
Ratio 12345678:9
12345678:abcdefghij
Lat:52.5,Lon:13.4
MONDAY.TUESDAY.WEDNESDAY
Mozilla/5.0 (X11; Linux x86_64)
hooks.slack.com is the host
discord.com/api/webhooks are documented
key-value-store-0123456789
AccountKey is a field
SharedAccessKey is another
hf_transformers_is_not_a_token
user123 liked post 98765
E=mc^2 and a^2+b^2=c^2
See docs/decisions/0009-secrets.md
El código es 12345
会议在下午三点开始
パスワードを忘れました
Пароль: спросить у Анны
"""

LINES: list[str] = [line for line in ORDINARY.splitlines() if line]
